"""The exact rank test of two samples, with ties, and its correction for many quantities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats


@dataclass(frozen=True)
class RankTest:
    """Outcome of a test.

    Attributes:
        p: two-sided p-value, above 0.
        least: the smallest p-value that these values could have given, however they had been dealt to the samples.
    """

    p: float
    least: float


def rank_test(a: Float[np.ndarray, " m"], b: Float[np.ndarray, " n"]) -> RankTest:
    """Wilcoxon's rank-sum (Mann-Whitney) test, exact: over all ways to deal the pooled values to the two samples.

    Ties have their mean rank, so that on values 0 and 1 this is Fisher's exact test; infinite values are larger than
    all others, and equal to each other.

    Raises:
        ValueError: a sample is empty, or a value is nan.
    """
    if not len(a) or not len(b) or np.isnan([*a, *b]).any():
        raise ValueError("expected two samples without nan")
    ranks = np.rint(2 * stats.rankdata([*a, *b])).astype(np.int64)  # twice the rank, an integer in spite of ties
    n = len(b)
    ways = np.zeros((n + 1, int(np.sort(ranks)[-n:].sum()) + 1))  # [k, s]: ways to choose k of the ranks with sum s
    ways[0, 0] = 1
    for rank in ranks.tolist():
        for k in range(n, 0, -1):
            ways[k, rank:] += ways[k - 1, : ways.shape[1] - rank]
    # Distance from the mean, times the number of values to stay an integer.
    distance = np.abs(len(ranks) * np.arange(ways.shape[1]) - n * ranks.sum())
    observed = abs(len(ranks) * int(ranks[len(a) :].sum()) - n * int(ranks.sum()))
    possible = ways[n] > 0
    total = ways[n].sum()
    return RankTest(
        float(ways[n][distance >= observed].sum() / total),
        float(ways[n][distance >= distance[possible].max()].sum() / total),
    )


def testable(tests: Sequence[RankTest], alpha: float) -> list[bool]:
    """Which tests could be significant at level alpha, corrected for their number, by Tarone's criterion.

    These are the largest family of at most k tests of which each could have a p-value of alpha / k. The pooled values
    alone decide it, not how they were dealt, so correcting for this family alone keeps the error rate.
    """
    least = np.array([test.least for test in tests])
    k = next((k for k in range(1, len(tests) + 1) if (least <= alpha / k).sum() <= k), 1)
    return (least <= alpha / k).tolist()


def adjusted(tests: Sequence[RankTest], alpha: float) -> list[float]:
    """P-values corrected by Holm's method for the number of testable ones; 1 for the others.

    Rejecting those of at most alpha has a probability of at most alpha of any false rejection.
    """
    family = np.flatnonzero(testable(tests, alpha))
    result = np.ones(len(tests))
    p = np.array([test.p for test in tests])[family]
    order = np.argsort(p)
    corrected = np.maximum.accumulate(p[order] * np.arange(len(family), 0, -1))
    result[family[order]] = np.minimum(corrected, 1)
    return result.tolist()
