"""The exact test of two shares of seeds, which sees a few bad seeds where a test of ranks needs more."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from scipy.stats import boschloo_exact

from aa_core.gate.ranks import PValue


def share_test(before: Sequence[float], after: Sequence[float]) -> PValue:
    """Boschloo's test of two samples of 0 and 1, in the direction in which the share of 1 changed.

    It takes every seed for an independent draw and the share for unknown, so that its error rate holds whatever the
    share is. A test that takes the number of 1 in both samples together for given, as a rank test does, wastes most of
    its error rate where hardly any value is 0. Seeds that both samples share make it conservative.

    Args:
        before: values of one sample.
        after: values of the other; a smaller share of 1 is tested against an equal one, or a larger one.
    """
    m, n, ones_before, ones_after = len(before), len(after), int(sum(before)), int(sum(after))
    if ones_before * n == ones_after * m:
        p = 1.0
    elif ones_after * m < ones_before * n:
        p = _p(n - ones_after, ones_after, m - ones_before, ones_before)
    else:
        p = _p(ones_after, n - ones_after, ones_before, m - ones_before)
    return PValue(p, _p(n, 0, 0, m))


@functools.lru_cache(maxsize=256)
def _p(more: int, others: int, fewer: int, others_before: int) -> float:
    result = boschloo_exact([[more, fewer], [others, others_before]], alternative="greater", n=64)
    return float(result.pvalue)  # pyright: ignore[reportAttributeAccessIssue]
