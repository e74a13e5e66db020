"""A check of the gate: seeds trained or found, compared with the baseline; and a new baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aa_core.errors import InputError
from aa_core.gate.baseline import Acceptance, Baseline
from aa_core.gate.comparison import Effect, compare
from aa_core.gate.config import GateConfig
from aa_core.gate.quantities import Family, samples
from aa_core.sweeps.execution import run_points
from aa_core.sweeps.point import Failure, Work
from aa_core.sweeps.record import RunRecord
from aa_core.training.config import TrainConfig
from aa_core.training.recipes import RECIPES

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


def recipe_config(name: str) -> TrainConfig:
    """The config of a recipe.

    Raises:
        InputError: there is none of this name.
    """
    if name not in RECIPES:
        raise InputError(f"--recipe {name!r}: expected one of {', '.join(RECIPES)}")
    return RECIPES[name]


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


def effects(gate: GateConfig, baseline: Baseline, records: Sequence[RunRecord]) -> list[Effect]:
    """Runs against the baseline's; none where fewer than two seeds gave a run."""
    if len(records) < 2:
        return []
    return compare(samples(baseline.records), samples(records), gate.alpha)


def notes(baseline: Baseline, records: Sequence[RunRecord], found: Sequence[Effect]) -> list[str]:
    """What a reader should know of a comparison: what changed in the code and config, and what it could have seen."""
    if not records:
        return []
    now, before = records[0], baseline.records[0]
    lines = [
        f"training code {now.code[:12]}, the baseline's"
        + ("" if now.code == baseline.code else f" is {baseline.code[:12]}")
    ]
    lines += [f"config: {difference}" for difference in _differences(_flat(before.config), _flat(now.config))]
    known = {_figures(record) for record in baseline.records}
    lines.append(f"{sum(_figures(record) in known for record in records)} of {len(records)} runs are in the baseline")
    gone = set(before.claims or {}) - set(now.claims or {})
    lines += [f"no longer judged: {', '.join(sorted(gone))}"] if gone else []
    for name in (Family.HEADLINE, Family.CLAIMS):
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
        InputError: there are fewer than two runs.
    """
    if len(records) < 2:
        raise InputError(f"{len(records)} runs are no baseline, expected at least two: give more --seeds")
    history = [*(old.history if old else ()), Acceptance(date, reason, records[0].code, len(records))]
    return Baseline(recipe, round(step_over_products, 3), history, list(records))


def _figures(record: RunRecord) -> str:
    """What a run with the same bits has, too."""
    return repr((record.config["seed"], record.code, record.phases, record.accuracies))


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Fields of a nested config by dotted names, without the run's seed."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return {name: value for name, value in flat.items() if name != "seed"}


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys([*before, *now])
    return [
        f"{name} {before.get(name)} before, {now.get(name)} now" for name in names if before.get(name) != now.get(name)
    ]
