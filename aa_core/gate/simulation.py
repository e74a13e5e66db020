"""How often the comparison raises an alarm on runs of one and the same code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aa_core.errors import InputError
from aa_core.gate.comparison import Change, Effect, compare, level_of_a_claim
from aa_core.gate.quantities import Family, Samples, quantities, samples
from aa_core.gate.ranks import rank_test
from aa_core.sweeps.record import RunRecord

SEED = 0


@dataclass(frozen=True)
class Simulated:
    """One simulated comparison.

    Attributes:
        new: places, among the records, of those that stood for the new runs.
        effects: what the comparison said.
    """

    new: tuple[int, ...]
    effects: Sequence[Effect]

    @property
    def alarms(self) -> list[Effect]:
        """Regressions, all of them false."""
        return [effect for effect in self.effects if effect.change is Change.REGRESSION]


def simulate(records: Sequence[RunRecord], n_new: int, n: int, alpha: float) -> list[Simulated]:
    """Compare random subsets of some runs with the rest of them.

    Args:
        records: runs of the same code.
        n_new: size of the subsets that stand for new runs.
        n: how many comparisons.
        alpha: error rate of each.

    Raises:
        InputError: there are too few runs, or so few new ones that none of the ranked quantities could raise an alarm.
    """
    if n_new < 2 or len(records) - n_new < 2:
        raise InputError(f"{len(records)} runs cannot be split into {n_new} new ones and at least 2 others")
    rng, everything = np.random.default_rng(SEED), samples(records, quantities(records))
    comparisons = []
    for _ in range(n):
        new = np.sort(rng.choice(len(records), n_new, replace=False))
        old = np.setdiff1d(np.arange(len(records)), new)
        comparisons.append(
            Simulated(tuple(new.tolist()), compare(_chosen(everything, old), _chosen(everything, new), alpha))
        )
    ranked = (effect for item in comparisons for effect in item.effects if effect.quantity.family is not Family.OUTCOME)
    if comparisons and not any(effect.testable for effect in ranked):
        raise InputError(
            f"{n_new} new runs against {len(records) - n_new} cannot raise an alarm: give --simulate more --seeds"
        )
    return comparisons


def limits(comparisons: Sequence[Simulated], n_old: int, n_new: int, alpha: float) -> list[str]:
    """How many quantities could have raised a false alarm, and why not all, in two lines."""
    could = []
    for family in Family:
        tests = [
            [effect.testable for effect in item.effects if effect.quantity.family is family] for item in comparisons
        ]
        could.append(f"{family}: {min(map(sum, tests))} of {len(tests[0])}")
    left_out, check = (_least_p(n_old, n_new), _least_p(n_old + n_new, n_new))
    sizes = ["small enough" if least <= level_of_a_claim(alpha) else "too large" for least in (left_out, check)]
    return [
        f"could have raised one: {'; '.join(could)}",
        f"{n_old} against {n_new} give no p-value below {left_out:.1g}, {sizes[0]} for the correction for all claims; "
        f"a check compares with all {n_old + n_new}, where {check:.1g} is {sizes[1]}",
    ]


def _least_p(n_old: int, n_new: int) -> float:
    """The smallest p-value of samples of so many different values."""
    return rank_test(np.arange(n_old), np.arange(n_old, n_old + n_new)).p


def _chosen(everything: Samples, places: np.ndarray) -> Samples:
    return {quantity: tuple(values[place] for place in places) for quantity, values in everything.items()}
