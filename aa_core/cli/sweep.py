"""`aa sweep`: train every point of a grid of configs, here or on a cluster."""

from __future__ import annotations

import argparse
import hashlib
import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from aa_core.cli.options import path
from aa_core.cli.outputs import check_outputs
from aa_core.errors import InputError
from aa_core.seeds import parse_seeds

if TYPE_CHECKING:
    from aa_core.sweeps.grid import Axis
    from aa_core.sweeps.record import RunRecord
    from aa_core.sweeps.results import SweepResults

MOST_JOBS = 1024
OF_TRAINING = {"recipe": "paper", "threads": 1} | dict.fromkeys(
    ("points", "seeds", "output", "csv", "judge", "jobs", "scheduler", "cache")
)
"""Options that say how to train, with their defaults."""

EPILOG = """\
examples:
  aa sweep f --points 10 --seeds 0-1 --recipe fast --output f.json
  aa sweep r                              20 frequencies of 2-variable sequences
  aa sweep f=0.1,0.3 r=0.05:0.95:10       a grid: every combination
  aa sweep learning_rate=1e-3,2e-3 seed=0-3 split.never_left=kl,

all AXIS stand together, before or after the options

f is split.train_fraction, the share of pairs in training: 0.06 to 0.99 with r = 1.
r is split.two_variable_frequency: kinds are drawn with weights 12 : 10 : 10 : 10 r (0-var, 1L, 1R, 2-var), so that
10 r / (32 + 10 r) of all sequences have two variables: 0.01 to 0.99 with f = 0.7.

exit code: 0 every point has a record, 1 one failed (its reason is in the output), 2 bad input
half-way and learned measure how far the paper's number lies outside of the fitted interval, 0 inside
with --verify: 0 all claims about the sweeps hold, 1 one fails, 2 bad input, 3 one is undecided
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "sweep",
        help="train a grid of configs, here or on a cluster; goes on with what was interrupted",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "axes", nargs="*", metavar="AXIS", help="f, r or FIELD=VALUES; VALUES: 1,2 or FIRST:LAST:N, for a seed 0-3"
    )
    parser.add_argument(
        "--recipe", default=OF_TRAINING["recipe"], metavar="NAME", help="training recipe: paper (default) or fast"
    )
    parser.add_argument("--points", type=int, metavar="N", help="values of f and r where none are given (20)")
    parser.add_argument("--seeds", metavar="SEEDS", help="repeat with these seeds: 0-4, 0,2,5-7, all (0-15)")
    parser.add_argument("--output", type=path, metavar="FILE", help="write results to FILE (JSON) as points finish")
    parser.add_argument("--csv", type=path, metavar="FILE", help="write a table to FILE, a line a run")
    parser.add_argument(
        "--judge",
        action=argparse.BooleanOptionalAction,
        help="whether to judge every claim on every run (default: where seeds alone vary)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at a time on this machine (default: all cores)")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads of PyTorch in each (default 1)",
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on the Dask cluster of this scheduler instead")
    parser.add_argument(
        "--cache", type=path, metavar="DIR", help="where runs are kept (default: the $AA_CACHE of each worker)"
    )
    parser.add_argument(
        "--verify",
        type=path,
        nargs="+",
        metavar="FILE",
        help="train nothing: judge the claims about f and r on outputs",
    )
    parser.add_argument(
        "--markdown",
        type=path,
        metavar="FILE",
        help="with --verify, write a page to FILE, and its figures to a folder beside it",
    )
    parser.set_defaults(run=run, goes_on=True)


def run(options: argparse.Namespace) -> int:
    """Do every point that is not in the output yet."""
    from aa_core.cli.progress import bar
    from aa_core.files import write_atomically
    from aa_core.sweeps.execution import run_points
    from aa_core.sweeps.grid import grid
    from aa_core.sweeps.point import Failure, Work
    from aa_core.sweeps.record import plain_config
    from aa_core.sweeps.results import SweepResults, csv_table, resumed, save_results, sweep_manifest, with_points
    from aa_core.training.recipes import recipe_config

    if options.verify is not None:
        return _verify(options)
    _check(options)
    _draw_seed(options)
    base, axes = recipe_config(options.recipe), _axes(options)
    configs = grid(base, axes)
    order = [plain_config(config) for config in configs]
    check_outputs({"--csv": options.csv})
    judge = options.judge if options.judge is not None else _varied(axes) == ["seed"]
    manifest = sweep_manifest(_command(options), base, axes, judge=judge)
    with _alone(options):
        results = SweepResults(manifest)
        if options.output is not None:
            results = resumed(options.output, manifest, order, judge=judge)
            save_results(options.output, results)
        done = [record.config for record in results.records if record.claims or not judge]
        waiting = [config for config, plain in zip(configs, order, strict=True) if plain not in done]
        work = Work(judge=judge, threads=options.threads, cache=options.cache)
        points = run_points(waiting, work, jobs=options.jobs, scheduler=options.scheduler)
        for point in bar(points, len(waiting), "points"):
            results = with_points(results, order, [point])
            if options.output is not None:
                save_results(options.output, results)
            if isinstance(point, Failure):
                print(f"aa: {_point_name(point.config, axes)}: failed: {point.reason}", file=sys.stderr)
    if options.csv is not None:
        write_atomically(options.csv, csv_table(results).encode())
    _print(results, len(configs))
    return 1 if results.failures else 0


def _alone(options: argparse.Namespace) -> AbstractContextManager[None]:
    """Keep other sweeps from the same output, of which each would overwrite what the others write."""
    from aa_core.files import check_writable
    from aa_core.locks import held_alone
    from aa_core.runs import default_root

    if options.output is None:
        return nullcontext()
    check_writable(options.output)
    name = hashlib.sha256(str(options.output.resolve()).encode()).hexdigest()[:16]
    lock = (options.cache or default_root()) / "locks" / f"{name}.lock"
    return held_alone(lock, f"--output {options.output}: another sweep writes it: wait until it is done")


def _verify(options: argparse.Namespace) -> int:
    """Judge the claims about each results file, print them, write the page."""
    from aa_core.cli.verify import exit_code
    from aa_core.report.record import claim_record
    from aa_core.report.table import results_table, summary_line, terminal
    from aa_core.sweeps.claims import SweepSubject, verify_sweep
    from aa_core.sweeps.curve import load_curve
    from aa_core.sweeps.results import load_results
    from aa_core.sweeps.threshold import fit_text

    given = ["AXIS"] * bool(options.axes)
    given += [f"--{name}" for name, default in OF_TRAINING.items() if getattr(options, name) != default]
    if given:
        raise InputError(f"--verify judges results that are there: leave {', '.join(given)} out")
    if options.markdown is not None:
        from aa_core.report.sweeps_page import figure_paths

        reads = {f"--verify {file}": file for file in options.verify}
        check_outputs({"--markdown": options.markdown}, reads, figure_paths(options.verify, options.markdown))
    curves = {file: load_curve(file) for file in options.verify}
    failed = {file: load_results(file).failures for file in options.verify}
    console, judged = terminal(), []
    for file, found in curves.items():
        results = verify_sweep(found)
        records = [claim_record(result) for result in results]
        console.print(str(file), markup=False)
        console.print(results_table(records))
        console.print(summary_line(records))
        sweep = SweepSubject(found)
        console.print(fit_text(found, sweep.transition), markup=False, soft_wrap=True)
        if failed[file]:
            points = "1 point" if len(failed[file]) == 1 else f"{len(failed[file])} points"
            console.print(f"without {points} that failed, such as: {failed[file][0].reason}", markup=False)
        judged += results
    if options.markdown is not None:
        from aa_core.report.sweeps_page import write_sweeps_page

        write_sweeps_page(options.verify, options.markdown)
    return exit_code(judged)


def _check(options: argparse.Namespace) -> None:
    from aa_core.cli.options import MOST_THREADS

    if options.markdown is not None:
        raise InputError("--markdown goes with --verify FILE")
    if not options.axes and options.seeds is None:
        raise InputError("nothing to sweep: expected f, r or FIELD=VALUES, such as learning_rate=1e-3,2e-3")
    if options.points is not None and not {"f", "r"} & set(options.axes):
        raise InputError("--points is for f and r: give the number in FIELD=FIRST:LAST:N")
    if not 1 <= options.threads <= MOST_THREADS:
        raise InputError(f"--threads is {options.threads}, expected 1 to {MOST_THREADS}")
    if options.jobs is not None and not 1 <= options.jobs <= MOST_JOBS:
        raise InputError(f"--jobs is {options.jobs}, expected 1 to {MOST_JOBS}")
    if options.cache is not None and options.cache.exists() and not options.cache.is_dir():
        raise InputError(f"--cache {options.cache} is not a folder: name one, or a place where it can be made")
    if options.jobs is not None and options.scheduler is not None:
        raise InputError("--jobs is for this machine, and a cluster has as many as its workers: leave it out")
    if options.output is not None and options.csv is not None and options.output.resolve() == options.csv.resolve():
        raise InputError(f"--csv {options.csv} is what --output writes: choose another place")


def _draw_seed(options: argparse.Namespace) -> None:
    """Put a drawn seed where `any` stands, so that the command that the output keeps asks for the same one."""
    drawn = str(parse_seeds("any")[0])
    options.seeds = drawn if options.seeds == "any" else options.seeds
    options.axes = [f"seed={drawn}" if axis == "seed=any" else axis for axis in options.axes]


def _axes(options: argparse.Namespace) -> list[Axis]:
    from aa_core.sweeps.grid import POINTS, parse_axis

    texts = [*options.axes, *([f"seed={options.seeds}"] if options.seeds is not None else [])]
    return [parse_axis(text, POINTS if options.points is None else options.points) for text in texts]


def _command(options: argparse.Namespace) -> str:
    """The command line that asks for the same points."""
    given = {"--points": options.points, "--seeds": options.seeds, "--recipe": options.recipe}
    named = [str(part) for name, value in given.items() if value is not None for part in (name, value)]
    judged = {None: [], True: ["--judge"], False: ["--no-judge"]}[options.judge]
    return shlex.join(["aa", "sweep", *options.axes, *named, *judged])


def _varied(axes: Sequence[Axis]) -> list[str]:
    """Fields of which there are several values; with one point, all."""
    return [axis.field for axis in axes if len(axis.values) > 1] or [axis.field for axis in axes]


def _point_name(config: Any, axes: Sequence[Axis]) -> str:
    from aa_core.sweeps.grid import field_value

    return ", ".join(f"{field}={field_value(config, field)}" for field in _varied(axes))


def _print(results: SweepResults, n_points: int) -> None:
    """A table of the points: the axes, the state, and the accuracies that the paper's sweeps are about."""
    from rich import box
    from rich.table import Table

    from aa_core.report.table import terminal
    from aa_core.sweeps.curve import GENERALISES, SEEN
    from aa_core.sweeps.grid import FRACTION, FREQUENCY, field_value

    def _values(record: RunRecord, fields: list[str]) -> list[Any]:
        return [field_value(record.config, field) for field in fields]

    shown = {"0-var seen": SEEN, "0-var held-out": GENERALISES[FRACTION], "2-var new": GENERALISES[FREQUENCY]}
    axes = _varied(results.manifest.axes)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in (*(field.removeprefix("split.") for field in axes), "state", *shown):
        table.add_column(column, no_wrap=True)
    for record in results.records:
        values = [f"{value:g}" if isinstance(value, float) else str(value) for value in _values(record, axes)]
        table.add_row(*values, record.state, *(f"{record.accuracy(*names):.3f}" for names in shown.values()))
    console = terminal()
    console.print(table)
    failed = f", {len(results.failures)} failed" if results.failures else ""
    console.print(f"{len(results.records)} of {n_points} points{failed}", highlight=False)
