"""What is compared between runs: quantities with a better direction, read from the records of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
        OUTCOME: whether a run composes at all: alone, so that a few seeds that do not are enough to tell.
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
        """What stands for a value that a run does not have: a phase that it never reached, an undefined measure."""
        return -math.inf if self.higher_is_better else math.inf


Samples = Mapping[Quantity, tuple[float, ...]]
"""Values of each quantity, one a run."""


def samples(records: Sequence[RunRecord]) -> Samples:
    """Every quantity of some runs.

    A claim that was skipped in every run has none; skipped in some, it does not hold in these and has the worst value.
    """
    found: dict[Quantity, tuple[float, ...]] = {
        Quantity("run/composes", Kind.SHARE, Family.OUTCOME): tuple(
            float(record.state in (State.COMPOSES, State.REFINED)) for record in records
        ),
        Quantity("run/refined", Kind.SHARE, Family.HEADLINE): tuple(
            float(record.state is State.REFINED) for record in records
        ),
        Quantity("run/claims-that-hold", Kind.ACCURACY, Family.HEADLINE): tuple(map(_share_of_claims, records)),
    }
    for name in _names(record.accuracies for record in records):
        found[Quantity(f"accuracy/{name}", Kind.ACCURACY, Family.HEADLINE)] = tuple(
            record.accuracy(name) for record in records
        )
    for name in _names(record.phases for record in records):
        steps = (record.phases.get(name) for record in records)
        found[Quantity(f"learned/{name}", Kind.STEPS, Family.HEADLINE)] = tuple(
            math.inf if n is None else n for n in steps
        )
    claims = [record.claims for record in records]
    for claim in CLAIMS:
        judged = [of_run[claim.id] if of_run and claim.id in of_run else None for of_run in claims]
        if all(item is None or item.verdict is Verdict.SKIPPED for item in judged):
            continue
        holds = Quantity(f"holds/{claim.id}", Kind.SHARE, Family.CLAIMS)
        found[holds] = tuple(float(item is not None and item.verdict is Verdict.HOLDS) for item in judged)
        value = Quantity(f"value/{claim.id}", Kind.MEASURED, Family.CLAIMS, claim.criterion.threshold)
        found[value] = tuple(value.worst if item is None or item.value is None else item.value for item in judged)
    return {quantity: values for quantity, values in found.items() if not any(map(math.isnan, values))}


def _share_of_claims(record: RunRecord) -> float:
    """Share of the claims judged on a run that hold; nan where none was judged."""
    verdicts = [claim.verdict for claim in (record.claims or {}).values() if claim.verdict is not Verdict.SKIPPED]
    return verdicts.count(Verdict.HOLDS) / len(verdicts) if verdicts else math.nan


def _names(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    """Names that occur in any of some mappings, in order."""
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))
