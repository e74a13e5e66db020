"""Counts of outcomes against the exact probabilities that they should have."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

ALPHA = 1e-6  # of one comparison: a correct sampler would fail on that share of the seeds
LEAST_EXPECTED = 5.0


def departure(counts: Int[np.ndarray, " outcomes"], law: Float[np.ndarray, " outcomes"]) -> str:
    """How counts depart from a law, empty where they do not.

    Chi-square; outcomes that are expected less than five times are taken together in a binomial test of their own, and
    what has probability 0 may not occur at all.

    Args:
        counts: how often each outcome occurred.
        law: probability of each outcome, of sum 1.
    """
    n = int(counts.sum())
    if n == 0:
        return "nothing was drawn"
    impossible = np.flatnonzero((law == 0) & (counts > 0))
    if len(impossible):
        return f"outcome {impossible[0]} occurs {counts[impossible[0]]} times in {n} and must not"
    expected = n * law
    rare = expected < LEAST_EXPECTED
    n_rare, share_rare = int(counts[rare].sum()), float(law[rare].sum())
    p = float(stats.binomtest(n_rare, n, min(share_rare, 1.0)).pvalue)
    if p <= ALPHA:
        return f"p = {p:.2g} in {n} draws: rare outcomes {n_rare} times, {n * share_rare:.1f} expected"
    observed, expected = counts[~rare], expected[~rare]
    if len(observed) < 2:
        return ""
    expected *= observed.sum() / expected.sum()
    p = float(stats.chisquare(observed, expected).pvalue)
    if p > ALPHA:
        return ""
    worst = int(np.argmax((observed - expected) ** 2 / expected))
    name, times = np.flatnonzero(~rare)[worst], observed[worst]
    return f"p = {p:.2g} in {n} draws, such as outcome {name}: {times} times, {expected[worst]:.1f} expected"


def uniform_departure(outcomes: Int[np.ndarray, " n"], n_outcomes: int) -> str:
    """How outcomes `0 .. n_outcomes-1` depart from being equally likely, empty where they do not."""
    return departure(np.bincount(outcomes, minlength=n_outcomes), np.full(n_outcomes, 1 / n_outcomes))
