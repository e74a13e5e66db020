"""How often the comparison raises an alarm on runs of one and the same code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aa_core.errors import InputError
from aa_core.gate.comparison import Change, Effect, compare
from aa_core.gate.quantities import Samples, samples
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
        InputError: there are too few runs.
    """
    if n_new < 2 or len(records) - n_new < 2:
        raise InputError(f"{len(records)} runs cannot be split into {n_new} new ones and at least 2 others")
    rng, everything = np.random.default_rng(SEED), samples(records)
    comparisons = []
    for _ in range(n):
        new = np.sort(rng.choice(len(records), n_new, replace=False))
        old = np.setdiff1d(np.arange(len(records)), new)
        comparisons.append(
            Simulated(tuple(new.tolist()), compare(_chosen(everything, old), _chosen(everything, new), alpha))
        )
    return comparisons


def _chosen(everything: Samples, places: np.ndarray) -> Samples:
    return {quantity: tuple(values[place] for place in places) for quantity, values in everything.items()}
