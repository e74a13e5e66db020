"""The rule that tells a regression from noise.

A quantity has regressed, or improved, if its change is both

- *significant*: the p-value of an exact test of the new runs against the baseline's, corrected by Holm's method over
  all quantities of its family, is at most the family's share (`SHARES`) of the gate's error rate. The test is one of
  ranks, and Boschloo's for the share of seeds that compose, which is a family by itself; and
- *of relevant size* (`RELEVANT`): the change of the median (of the mean for shares of seeds) is at least

      share of seeds   0.25
      accuracy         0.01
      steps            15 % of the baseline's
      measured value   25 % of the baseline's distance from the claim's threshold

A change of relevant size with an uncorrected p-value of at most its family's `SUSPECT` is *suspect*: reported, no
alarm, a reason to train more seeds. Improvements are reported, no alarm. Seeds that are among the baseline's make the
test conservative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from aa_core.claims.registry import CLAIMS
from aa_core.gate.quantities import QUANTITIES_A_CLAIM, Family, Kind, Quantity, Samples, quantities, samples
from aa_core.gate.ranks import PValue, adjusted, can_be_significant, rank_test
from aa_core.gate.shares import share_test
from aa_core.sweeps.record import RunRecord

RELEVANT = {Kind.SHARE: 0.25, Kind.ACCURACY: 0.01, Kind.STEPS: 0.15, Kind.MEASURED: 0.25}
SHARES = {Family.OUTCOME: 3 / 8, Family.HEADLINE: 1 / 4, Family.CLAIMS: 3 / 8}
SUSPECT = {Family.OUTCOME: 0.1, Family.HEADLINE: 0.01, Family.CLAIMS: 0.01}


class Change(StrEnum):
    """What became of a quantity."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    SUSPECT = "suspect"
    SAME = "same"


@dataclass(frozen=True)
class Effect:
    """A quantity in the baseline and now.

    Attributes:
        quantity: the quantity.
        before: its values in the baseline.
        after: its values now.
        test: the test.
        adjusted_p: its p-value, corrected for all quantities of the family.
        testable: whether such values could have been significant at all.
        change: the verdict.
    """

    quantity: Quantity
    before: tuple[float, ...]
    after: tuple[float, ...]
    test: PValue
    adjusted_p: float
    testable: bool
    change: Change

    @property
    def shift(self) -> float:
        """Change of the centre, see `centre`."""
        return shift(self.quantity, self.before, self.after)


def centre(quantity: Quantity, values: Sequence[float]) -> float:
    """Mean of a share of seeds, else the median."""
    return float(np.mean(values) if quantity.kind is Kind.SHARE else np.median(values))


def shift(quantity: Quantity, before: Sequence[float], after: Sequence[float]) -> float:
    """Change of the centre; 0 where both are infinite."""
    old, new = centre(quantity, before), centre(quantity, after)
    return 0.0 if old == new else new - old


def is_relevant(quantity: Quantity, before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether a change is of a size that matters."""
    old, size = centre(quantity, before), abs(shift(quantity, before, after))
    unit = 1.0
    if quantity.kind is Kind.STEPS:
        unit = old
    elif quantity.threshold is not None:
        unit = abs(old - quantity.threshold.bound)
    return size > 0 and (math.isinf(size) or size >= RELEVANT[quantity.kind] * unit)


def compare_runs(before: Sequence[RunRecord], after: Sequence[RunRecord], alpha: float) -> list[Effect]:
    """Compare every quantity that any of the baseline's runs has; see `compare`."""
    known = quantities(before)
    return compare(samples(before, known), samples(after, known), alpha)


def compare(before: Samples, after: Samples, alpha: float) -> list[Effect]:
    """Compare quantities, family by family, in the baseline's order.

    Args:
        before: values of the baseline's runs.
        after: values of the new runs, of the same quantities.
        alpha: probability of any false alarm.
    """
    effects: list[Effect] = []
    for name, share in SHARES.items():
        family, level = [quantity for quantity in before if quantity.family is name], alpha * share
        tests = [_test(quantity, before[quantity], after[quantity]) for quantity in family]
        corrected = adjusted(tests, level)
        for quantity, test, p, could in zip(family, tests, corrected, can_be_significant(tests, level), strict=True):
            values = before[quantity], after[quantity]
            change = _change(quantity, *values, p <= level, test.p <= SUSPECT[name])
            effects.append(Effect(quantity, *values, test, p, could, change))
    return effects


def level_of_a_claim(alpha: float) -> float:
    """The p-value at which a claim lost is a regression whatever else changed."""
    return alpha * SHARES[Family.CLAIMS] / (QUANTITIES_A_CLAIM * len(CLAIMS))


def is_enough(n_before: int, n_after: int, alpha: float) -> bool:
    """Whether so many runs could tell: a claim lost in every new run, whatever else changed, would be a regression."""
    best, worst = [1.0] * n_before, [0.0] * n_after
    of_a_claim = rank_test(np.array(best), np.array(worst)).p
    return of_a_claim <= level_of_a_claim(alpha) and share_test(best, worst).p <= alpha * SHARES[Family.OUTCOME]


def _test(quantity: Quantity, before: Sequence[float], after: Sequence[float]) -> PValue:
    if quantity.family is Family.OUTCOME:
        return share_test(before, after)
    return rank_test(np.array(before), np.array(after))


def _change(
    quantity: Quantity, before: Sequence[float], after: Sequence[float], significant: bool, suspect: bool
) -> Change:
    if not (significant or suspect) or not is_relevant(quantity, before, after):
        return Change.SAME
    worse = (shift(quantity, before, after) < 0) == quantity.higher_is_better
    if quantity.threshold is not None and worse and not quantity.threshold.accepts(centre(quantity, before)):
        return Change.SAME  # a claim that did not hold has nothing to lose
    if not significant:
        return Change.SUSPECT
    return Change.REGRESSION if worse else Change.IMPROVEMENT
