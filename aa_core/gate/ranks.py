"""The exact rank test of two samples, with ties, and its correction for many quantities."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class PValue:
    """Outcome of a test.

    Attributes:
        p: p-value, above 0.
        least: the smallest p-value that was possible, whichever way the values had been dealt to the samples.
    """

    p: float
    least: float


def rank_test(a: Float[np.ndarray, " m"], b: Float[np.ndarray, " n"]) -> PValue:
    """Wilcoxon's rank-sum (Mann-Whitney) test, two-sided and exact: over all ways to deal the pooled values out.

    Ties have their mean rank, so that on values 0 and 1 this is Fisher's exact test; infinite values are larger than
    all others, and equal to each other.

    Raises:
        ValueError: a sample is empty, or a value is nan.
    """
    if not len(a) or not len(b) or np.isnan([*a, *b]).any():
        raise ValueError("expected two samples without nan")
    pooled = np.concatenate([a, b])
    in_order = np.sort(pooled)
    # Twice the mean rank, an integer in spite of ties: values below, and values not above, and 1.
    ranks = in_order.searchsorted(pooled, "left") + in_order.searchsorted(pooled, "right") + 1
    ways = _ways(tuple(np.sort(ranks).tolist()), len(b))
    # Distance from the mean, times the number of values to stay an integer.
    distance = np.abs(len(ranks) * np.arange(len(ways)) - len(b) * ranks.sum())
    observed = abs(len(ranks) * int(ranks[len(a) :].sum()) - len(b) * int(ranks.sum()))
    return PValue(
        float(ways[distance >= observed].sum() / ways.sum()),
        float(ways[distance >= distance[ways > 0].max()].sum() / ways.sum()),
    )


@functools.lru_cache(maxsize=256)
def _ways(ranks: tuple[int, ...], n: int) -> Float[np.ndarray, " sums"]:
    """Ways to choose `n` of the ranks, by their sum; many quantities share the same ranks."""
    ways = np.zeros((n + 1, sum(ranks[-n:]) + 1))
    ways[0, 0] = 1
    for rank in ranks:
        for k in range(n, 0, -1):
            ways[k, rank:] += ways[k - 1, : ways.shape[1] - rank]
    return ways[n]


def can_be_significant(tests: Sequence[PValue], alpha: float) -> list[bool]:
    """Which tests could be significant at level alpha, corrected for their number, by Tarone's criterion.

    These are the largest family of at most k tests of which each could have a p-value of alpha / k. The pooled values
    alone decide it, not how they were dealt, so correcting for this family alone keeps the error rate.
    """
    least = np.array([test.least for test in tests])
    k = next((k for k in range(1, len(tests) + 1) if (least <= alpha / k).sum() <= k), 1)
    return (least <= alpha / k).tolist()


def adjusted(tests: Sequence[PValue], alpha: float) -> list[float]:
    """P-values corrected by Holm's method for the number of testable ones; 1 for the others.

    Rejecting those of at most alpha has a probability of at most alpha of any false rejection.
    """
    family = np.flatnonzero(can_be_significant(tests, alpha))
    result = np.ones(len(tests))
    p = np.array([test.p for test in tests])[family]
    order = np.argsort(p)
    corrected = np.maximum.accumulate(p[order] * np.arange(len(family), 0, -1))
    result[family[order]] = np.minimum(corrected, 1)
    return result.tolist()
