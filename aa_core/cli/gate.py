"""`aa gate`: whether training regressed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aa_core.cli.options import path
from aa_core.cli.outputs import check_outputs
from aa_core.errors import InputError
from aa_core.files import check_writable

if TYPE_CHECKING:
    from aa_core.gate.baseline import Baseline
    from aa_core.gate.check import Runs
    from aa_core.gate.config import GateConfig
    from aa_core.gate.invariant import Invariant, Outcome
    from aa_core.gate.result import GateResult

BASELINE = Path("docs/gate/baseline.json")
SIMULATIONS = 20
MOST_JOBS = 256


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "gate",
        help="whether training regressed: invariants, then retrained seeds against the committed baseline",
        description="Check invariants of training, which takes seconds; retrain the gate's seeds, or find them if the "
        "training code is unchanged; judge all claims on them; and compare with the committed baseline.",
        epilog="exit code: 0 no regression, 1 a regression or a lost claim, 2 bad input; see docs/gate.md",
    )
    parser.add_argument("--recipe", metavar="NAME", help="training recipe (default: the gate's, fast)")
    parser.add_argument("--seeds", metavar="SEEDS", help="seeds to train: 0-5 (default; 0-31 for a new baseline)")
    parser.add_argument("--baseline", type=path, default=BASELINE, metavar="FILE", help=f"default: {BASELINE}")
    parser.add_argument("--jobs", type=int, metavar="N", help="seeds trained at once, one thread each (default: cores)")
    parser.add_argument("--cache", type=path, metavar="DIR", help="where runs are kept (default: as for aa train)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--invariants-only", action="store_true", help="train nothing")
    what.add_argument("--no-invariants", action="store_true", help="go to the trainings even if an invariant moved")
    what.add_argument(
        "--simulate",
        action="store_true",
        help=f"train nothing: compare {SIMULATIONS} random choices of the baseline's runs with the others, "
        "which may raise no alarm",
    )
    parser.add_argument("--update-baseline", action="store_true", help="make the baseline anew; needs --reason")
    parser.add_argument("--reason", metavar="TEXT", help="why the new baseline is right, for its history")
    for name in ("json", "junit", "markdown"):
        parser.add_argument(f"--{name}", type=path, metavar="FILE", help=f"write the result to FILE as {name}")
    parser.set_defaults(run=run, goes_on=True)


def run(options: argparse.Namespace) -> int:
    """Check, print, write; the exit code."""
    from dataclasses import replace

    from aa_core.gate.baseline import load_baseline
    from aa_core.gate.check import check_baseline_size, check_recipe, check_seeds
    from aa_core.training.recipes import recipe_config

    _check_options(options)
    gate = _gate_config(options)
    recipe_config(gate.recipe)
    if options.simulate:
        simulated = load_baseline(options.baseline)
        check_recipe(gate, simulated)
        return _simulate(gate, simulated)
    compares = not (options.invariants_only or options.update_baseline)
    extends = options.update_baseline and options.baseline.exists()
    baseline = load_baseline(options.baseline) if compares or extends else None
    if baseline is not None:
        check_recipe(gate, baseline)
    if options.update_baseline:
        check_baseline_size(gate, len(gate.baseline_seeds), "the new baseline")
    elif baseline is not None:
        check_seeds(gate, baseline)
    result = _checked(options, gate, baseline)
    if options.update_baseline and not result.ok:
        result = replace(result, notes=[f"{options.baseline} was not written"])
    _report(options, result)
    return 0 if result.ok else 1


def _check_options(options: argparse.Namespace) -> None:
    """Refuse what cannot be meant, before any work."""
    if options.update_baseline and (options.invariants_only or options.no_invariants or options.simulate):
        raise InputError(
            "--update-baseline does all the work: leave --invariants-only, --no-invariants, --simulate out"
        )
    if options.update_baseline != bool((options.reason or "").strip()):
        raise InputError("--update-baseline and --reason TEXT go together: say why the new baseline is right")
    if options.jobs is not None and not 1 <= options.jobs <= MOST_JOBS:
        raise InputError(f"--jobs is {options.jobs}, expected 1 to {MOST_JOBS}")
    try:
        (options.reason or "").encode()
    except UnicodeEncodeError as error:
        raise InputError(f"--reason is not valid UTF-8 text: {error.reason} at character {error.start}") from error
    reports = {f"--{name}": getattr(options, name) for name in ("json", "junit", "markdown")}
    given = [name for name, output in reports.items() if output is not None]
    if options.simulate and given:
        raise InputError(f"--simulate prints what it finds and writes no report: leave {', '.join(given)} out")
    check_outputs(reports, {"--baseline": options.baseline})
    if options.update_baseline:
        check_writable(options.baseline)


def _gate_config(options: argparse.Namespace) -> GateConfig:
    from dataclasses import replace

    from aa_core.gate.config import GateConfig
    from aa_core.seeds import parse_seeds

    gate = GateConfig()
    if options.recipe is not None:
        gate = replace(gate, recipe=options.recipe)
    if options.seeds is not None:
        seeds = tuple(parse_seeds(options.seeds))
        gate = replace(gate, **{"baseline_seeds" if options.update_baseline else "seeds": seeds})
    return gate


def _checked(options: argparse.Namespace, gate: GateConfig, baseline: Baseline | None) -> GateResult:
    """The result of the stages that options ask for; a moved invariant is the end, unless they are left out."""
    from dataclasses import replace

    from aa_core.gate.baseline import write_baseline
    from aa_core.gate.check import effects, lost_claims, new_baseline, notes
    from aa_core.gate.result import GateResult, Throughput
    from aa_core.gate.throughput import step_over_products
    from aa_core.training.codehash import training_code_hash
    from aa_core.training.recipes import recipe_config

    outcomes = [] if options.no_invariants else _invariants(gate)
    result = GateResult(gate.recipe, training_code_hash(), outcomes)
    if options.invariants_only or not result.ok:
        return result
    speed = step_over_products(recipe_config(gate.recipe))
    runs = _runs(options, gate)
    if options.update_baseline:
        result = replace(result, failures=runs.failures)
        if result.ok:
            made = new_baseline(
                baseline, gate.recipe, runs.records, speed, options.reason.strip(), date.today().isoformat()
            )
            write_baseline(options.baseline, made)
            result = replace(result, accepted=f"{options.baseline}, {len(runs.records)} seeds of {gate.recipe}")
        return result
    assert baseline is not None
    found = effects(gate, baseline, runs.records)
    return replace(
        result,
        failures=runs.failures,
        lost=lost_claims(baseline),
        effects=found,
        throughput=Throughput(baseline.step_over_products, speed, gate.slowdown),
        notes=notes(baseline, runs.records, found),
    )


def _invariants(gate: GateConfig) -> list[Outcome]:
    from aa_core.cli.progress import bar
    from aa_core.gate.registry import check_training
    from aa_core.gate.setting import Setting
    from aa_core.runs.environment import torch_threads
    from aa_core.training.recipes import recipe_config

    def progress(invariants: Sequence[Invariant], setting: str) -> Iterable[Invariant]:
        return bar(invariants, len(invariants), f"invariants, {setting}")

    with torch_threads(1):
        return check_training(Setting(gate.recipe, recipe_config(gate.recipe)), progress)


def _runs(options: argparse.Namespace, gate: GateConfig) -> Runs:
    from aa_core.cli.progress import bar
    from aa_core.gate.check import run_seeds
    from aa_core.sweeps.point import Work

    seeds = gate.baseline_seeds if options.update_baseline else gate.seeds
    work = Work(judge=True, cache=options.cache)
    return run_seeds(
        gate.recipe,
        seeds,
        work,
        options.jobs,
        lambda items: bar(items, len(seeds), "seeds, trained or found, and judged"),
    )


def _simulate(gate: GateConfig, baseline: Baseline) -> int:
    from aa_core.gate.simulation import limits, simulate
    from aa_core.report.table import terminal

    console = terminal()
    comparisons = simulate(baseline.records, len(gate.seeds), SIMULATIONS, gate.alpha)
    for comparison in comparisons:
        seeds = ", ".join(str(baseline.records[place].config["seed"]) for place in comparison.new)
        for effect in comparison.alarms:
            console.print(f"false alarm: {effect.quantity.name}, with {seeds} as the new seeds", markup=False)
    alarmed = sum(bool(comparison.alarms) for comparison in comparisons)
    n_new, n_old = len(gate.seeds), len(baseline.records) - len(gate.seeds)
    console.print(f"{alarmed} of {len(comparisons)} comparisons of {n_new} runs with the other {n_old} raised an alarm")
    for line in limits(comparisons, n_old, n_new, gate.alpha):
        console.print(line, soft_wrap=True)
    return 1 if alarmed else 0


def _report(options: argparse.Namespace, result: GateResult) -> None:
    from aa_core.files import write_atomically
    from aa_core.gate import report
    from aa_core.report.table import terminal

    report.print_result(terminal(), result)
    for output, text in (
        (options.json, report.json_text),
        (options.junit, report.junit_text),
        (options.markdown, report.markdown_text),
    ):
        if output is not None:
            write_atomically(output, text(result).encode())
