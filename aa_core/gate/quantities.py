"""What is compared between runs: quantities with a better direction, read from the records of runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from aa_core.circuits.state import State
from aa_core.claims.registry import CLAIMS
from aa_core.statistics import Threshold, Verdict
from aa_core.sweeps.record import RunRecord


class Kind(StrEnum):
    """What a value is, which decides the size at which a change of it matters."""

    SHARE = "share of seeds"
    ACCURACY = "accuracy"
    STEPS = "steps"
    MEASURED = "measured"


class Family(StrEnum):
    """Quantities whose p-values are corrected together.

    Attributes:
        OUTCOME: whether a run composes at all: alone and by a test of its own (`aa_core.gate.shares`), so that a few
            seeds that do not are enough to tell.
        HEADLINE: the few numbers that sum a run up.
        CLAIMS: verdicts and values of claims.
    """

    OUTCOME = "outcome"
    HEADLINE = "headline quantities"
    CLAIMS = "verdicts and values of claims"


@dataclass(frozen=True)
class Quantity:
    """One number a run.

    Attributes:
        name: what it is.
        kind: what sort of number.
        family: what it is corrected together with.
        threshold: what a claim asks of a measured value.
    """

    name: str
    kind: Kind
    family: Family
    threshold: Threshold | None = None

    @property
    def higher_is_better(self) -> bool:
        """The better direction."""
        if self.threshold is not None:
            return self.threshold.comparison != "<="
        return self.kind is not Kind.STEPS

    @property
    def worst(self) -> float:
        """What stands for a value that a run does not have: a claim skipped, an accuracy or phase not measured."""
        if self.kind is Kind.SHARE:
            return 0.0
        return -math.inf if self.higher_is_better else math.inf


QUANTITIES_A_CLAIM = 2
"""The verdict, and the value of the headline criterion."""

Read = Callable[[RunRecord], float | None]
"""The value of a quantity on a run, None where the run has none."""

Samples = Mapping[Quantity, tuple[float, ...]]
"""Values of each quantity, one a run."""


def quantities(records: Sequence[RunRecord]) -> dict[Quantity, Read]:
    """Every quantity that any of some runs has, among those that the registry of claims knows."""
    readers: dict[Quantity, Read] = {
        Quantity("run/composes", Kind.SHARE, Family.OUTCOME): lambda run: run.state in (State.COMPOSES, State.REFINED),
        Quantity("run/refined", Kind.SHARE, Family.HEADLINE): lambda run: run.state is State.REFINED,
        Quantity("run/claims-that-hold", Kind.ACCURACY, Family.HEADLINE): _share_of_claims,
    }
    for name in _names(record.accuracies for record in records):
        quantity = Quantity(f"accuracy/{name}", Kind.ACCURACY, Family.HEADLINE)
        readers[quantity] = functools.partial(_accuracy, name)
    for name in _names(record.phases for record in records):
        readers[Quantity(f"learned/{name}", Kind.STEPS, Family.HEADLINE)] = functools.partial(_phase, name)
    for claim in CLAIMS:
        holds = Quantity(f"holds/{claim.id}", Kind.SHARE, Family.CLAIMS)
        value = Quantity(f"value/{claim.id}", Kind.MEASURED, Family.CLAIMS, claim.criterion.threshold)
        readers |= {holds: functools.partial(_holds, claim.id), value: functools.partial(_value, claim.id)}
    return {quantity: read for quantity, read in readers.items() if any(read(run) is not None for run in records)}


def samples(records: Sequence[RunRecord], of: Mapping[Quantity, Read]) -> Samples:
    """Quantities of some runs; where a run does not have one it counts at its worst, so that losing it shows."""
    return {quantity: tuple(_value_or_worst(quantity, read(run)) for run in records) for quantity, read in of.items()}


def _value_or_worst(quantity: Quantity, value: float | None) -> float:
    return quantity.worst if value is None or math.isnan(value) else float(value)


def _share_of_claims(run: RunRecord) -> float | None:
    """Share of the claims judged on a run that hold; None where none was judged."""
    verdicts = [claim.verdict for claim in (run.claims or {}).values() if claim.verdict is not Verdict.SKIPPED]
    return verdicts.count(Verdict.HOLDS) / len(verdicts) if verdicts else None


def _accuracy(name: str, run: RunRecord) -> float | None:
    return run.accuracy(name) if name in run.accuracies else None


def _phase(name: str, run: RunRecord) -> float | None:
    """Step at which a phase is reached: never, where the run measured it and it is not."""
    if name not in run.phases:
        return None
    step = run.phases[name]
    return math.inf if step is None else step


def _holds(claim: str, run: RunRecord) -> float | None:
    judged = (run.claims or {}).get(claim)
    return None if judged is None or judged.verdict is Verdict.SKIPPED else judged.verdict is Verdict.HOLDS


def _value(claim: str, run: RunRecord) -> float | None:
    judged = (run.claims or {}).get(claim)
    return None if judged is None else judged.value


def _names(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    """Names that occur in any of some mappings, in order."""
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))
