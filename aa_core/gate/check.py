"""A check of the gate: seeds trained or found, compared with the baseline; and a new baseline."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aa_core.claims.registry import CLAIMS
from aa_core.errors import InputError
from aa_core.gate.baseline import UPDATE, Acceptance, Baseline, check_baseline
from aa_core.gate.comparison import Effect, compare_runs, is_enough
from aa_core.gate.config import GateConfig
from aa_core.gate.quantities import Family
from aa_core.sweeps.execution import run_points
from aa_core.sweeps.grid import flat_fields
from aa_core.sweeps.point import Failure, Work
from aa_core.sweeps.record import RunRecord
from aa_core.training.recipes import recipe_config

Progress = Callable[[Iterable[RunRecord | Failure]], Iterable[RunRecord | Failure]]


@dataclass(frozen=True)
class Runs:
    """What became of some seeds.

    Attributes:
        records: of those that gave a run, in order of seed.
        failures: why the others gave none, a line each, in order of seed.
    """

    records: Sequence[RunRecord]
    failures: Sequence[str]


def run_seeds(recipe: str, seeds: Sequence[int], work: Work, jobs: int | None, progress: Progress) -> Runs:
    """Train seeds of a recipe, or find them, and judge them.

    Raises:
        InputError: there is no such recipe or seed, or a process died.
    """
    configs = [dataclasses.replace(recipe_config(recipe), seed=seed) for seed in seeds]
    done = sorted(progress(run_points(configs, work, jobs=jobs)), key=lambda item: item.config["seed"])
    return Runs(
        [item for item in done if isinstance(item, RunRecord)],
        [f"seed {item.config['seed']}: {item.reason}" for item in done if isinstance(item, Failure)],
    )


def check_recipe(gate: GateConfig, baseline: Baseline) -> None:
    """Make sure that a baseline is of the recipe that is checked.

    Raises:
        InputError: it is of another one.
    """
    if gate.recipe != baseline.recipe:
        raise InputError(f"the baseline is of the recipe {baseline.recipe}, not of {gate.recipe}: choose another file")


def check_seeds(gate: GateConfig, baseline: Baseline) -> None:
    """Make sure, before any training, that the seeds of a check and the baseline's runs are enough to tell.

    Raises:
        InputError: no claim could be found lost with so few.
    """
    check_baseline_size(gate, len(baseline.records), "the baseline")
    n_before, n_seeds = len(baseline.records), len(gate.seeds)
    if not is_enough(n_before, n_seeds, gate.alpha):
        least = next(n for n in itertools.count(n_seeds + 1) if is_enough(n_before, n, gate.alpha))
        raise InputError(
            f"--seeds names {n_seeds} seeds: with fewer than {least} against the baseline's {n_before}, "
            "a claim that every run loses would raise no alarm"
        )


def check_baseline_size(gate: GateConfig, n_runs: int, name: str) -> None:
    """Make sure that a baseline of so many runs is enough for the seeds that a check trains by default.

    Raises:
        InputError: no claim could be found lost with so few.
    """
    n_seeds = len(GateConfig().seeds)
    if not is_enough(n_runs, n_seeds, gate.alpha):
        least = next(n for n in itertools.count(n_runs + 1) if is_enough(n, n_seeds, gate.alpha))
        raise InputError(
            f"{name} has {n_runs} seeds: with fewer than {least} for the gate's {n_seeds} to be compared with, "
            f"a claim that every run loses would raise no alarm; make it with more --seeds: {UPDATE}"
        )


def lost_claims(baseline: Baseline) -> list[str]:
    """A line for every claim of the baseline that is in the registry no more, and so can be judged on no run."""
    known = {claim.id for claim in CLAIMS}
    return [
        f"{name}: the baseline's claim is in the registry no more, removed or renamed; if that is meant: {UPDATE}"
        for name in baseline.records[0].claims or {}
        if name not in known
    ]


def effects(gate: GateConfig, baseline: Baseline, records: Sequence[RunRecord]) -> list[Effect]:
    """Runs against the baseline's; none where fewer than two seeds gave a run."""
    if len(records) < 2:
        return []
    return compare_runs(baseline.records, records, gate.alpha)


def notes(baseline: Baseline, records: Sequence[RunRecord], found: Sequence[Effect]) -> list[str]:
    """What a reader should know of a comparison: what changed in the code and config, and what it could have seen."""
    if not records:
        return []
    now, before = records[0], baseline.records[0]
    lines = [
        f"training code {now.code[:12]}, the baseline's"
        + ("" if now.code == baseline.code else f" is {baseline.code[:12]}")
    ]
    lines += [f"config: {difference}" for difference in _differences(before.config, now.config)]
    known = {_figures(record) for record in baseline.records}
    lines.append(f"{sum(_figures(record) in known for record in records)} of {len(records)} runs are in the baseline")
    new = [claim.id for claim in CLAIMS if claim.id not in (before.claims or {})]
    lines += [f"not in the baseline, so not compared: {', '.join(new)}"] if new else []
    for name in Family:
        family = [effect for effect in found if effect.quantity.family is name]
        could = sum(effect.testable for effect in family)
        sizes = f"{len(baseline.records)} seeds against {len(records)}"
        lines.append(f"{could} of {len(family)} {name} could have raised an alarm, with {sizes}")
    return lines


def new_baseline(
    old: Baseline | None, recipe: str, records: Sequence[RunRecord], step_over_products: float, reason: str, date: str
) -> Baseline:
    """A baseline of new runs, with the history of the old one.

    Raises:
        InputError: no baseline can be made of them.
    """
    history = [*(old.history if old else ()), Acceptance(date, reason, records[0].code, len(records))]
    made = Baseline(recipe, round(step_over_products, 3), history, list(records))
    check_baseline(made)
    return made


def _figures(record: RunRecord) -> str:
    """What a run with the same bits has, too."""
    return repr((record.config["seed"], record.code, record.phases, record.accuracies))


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Fields in which two configs differ, but for the run's seed."""
    old, new = ({name: value for name, value in flat_fields(c).items() if name != "seed"} for c in (before, now))
    names = dict.fromkeys([*old, *new])
    return [f"{name} {old.get(name)} before, {new.get(name)} now" for name in names if old.get(name) != new.get(name)]
