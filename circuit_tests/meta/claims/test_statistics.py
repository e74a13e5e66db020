"""Error rates by simulation, and by exact enumeration where the number of outcomes allows it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from aa_core.claims.across import pass_counts
from aa_core.claims.registry import CLAIMS, interval_alpha
from aa_core.statistics import (
    FAMILY_ALPHA,
    Measurement,
    Verdict,
    at_least,
    at_most,
    judge,
    mean,
    sequential_share,
    shared_alpha,
)

SHARES = [0.02, 0.5, 0.9, 0.949, 0.951, 0.99]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("n", [20, 200])
def test_interval_covers_the_share_with_its_level(share: float, n: int) -> None:
    # Exact: the probability of every count whose interval misses the share.
    counts = np.arange(n + 1)
    misses = []
    for count in counts:
        low, high = Measurement(count / n, n, int(count)).interval(0.05) or (0.0, 1.0)
        misses.append(not low <= share <= high)
    missed = stats.binom.pmf(counts, n, share)[misses].sum()
    assert missed <= 0.05, f"the interval misses {share} with probability {missed}"


@pytest.mark.parametrize("share", [0.93, 0.95, 0.97])
@pytest.mark.parametrize("threshold", [at_least(0.95), at_most(0.95)], ids=str)
def test_a_verdict_is_wrong_no_more_often_than_stated(share: float, threshold) -> None:
    n, alpha = 500, 0.05
    counts = np.arange(n + 1)
    truth = Verdict.HOLDS if threshold.accepts(share) else Verdict.FAILS
    verdicts = [judge(Measurement(count / n, n, int(count)), threshold, alpha) for count in counts]
    wrong = [verdict not in (truth, Verdict.UNDECIDED) for verdict in verdicts]
    assert stats.binom.pmf(counts, n, share)[wrong].sum() <= alpha / 2


def runs_of(share: float, repeats: int, alpha: float, looks: list[int]):
    rng = np.random.default_rng(7)
    for _ in range(repeats):
        cases = rng.random(looks[-1]) < share
        yield sequential_share(lambda start, stop, cases=cases: cases[start:stop], at_least(0.95), alpha, looks)


@pytest.mark.parametrize("share", [0.9499, 0.95])
def test_stopping_early_keeps_the_error(share: float) -> None:
    # At the edge itself every decision for the wrong side is an error; looking ten times at alpha each would make more.
    looks, repeats, alpha = [50 * 2**k for k in range(5)], 100, 0.1
    wrong = Verdict.FAILS if at_least(0.95).accepts(share) else Verdict.HOLDS
    errors = sum(found.verdict is wrong for found in runs_of(share, repeats, alpha, looks))
    assert stats.binomtest(errors, repeats, alpha, alternative="greater").pvalue > 1e-3, f"{errors} of {repeats} wrong"


@pytest.mark.parametrize(("share", "verdict"), [(1.0, Verdict.HOLDS), (0.5, Verdict.FAILS)])
def test_a_clear_case_is_decided_with_few_cases(share: float, verdict: Verdict) -> None:
    looks = [50 * 2**k for k in range(8)]
    for found in runs_of(share, 50, 0.01, looks):
        assert found.verdict is verdict
        assert found.measurement.n is not None
        assert found.measurement.n <= 400, "a decided test goes on"


def test_cases_are_drawn_once_and_in_order() -> None:
    asked = []

    def draw(start: int, stop: int) -> np.ndarray:
        asked.append((start, stop))
        return np.arange(start, stop) % 20 != 0

    found = sequential_share(draw, at_least(0.95), 0.01, [10, 40, 100])
    assert asked == [(0, 10), (10, 40), (40, 100)]
    assert (found.verdict, found.measurement.count, found.measurement.n) == (Verdict.UNDECIDED, 95, 100)
    assert found.interval == found.measurement.interval(0.01 / 3), "each look has its share of the error"


def test_one_case_decides_nothing_about_others() -> None:
    one, none = mean(np.array([0.995])), mean(np.array([]))
    assert (one.value, one.n) == (0.995, 1)
    assert judge(one, at_least(0.9), 0.01) is Verdict.UNDECIDED
    assert judge(one, at_most(1.0), 0.01) is Verdict.UNDECIDED
    assert np.isnan(none.value)
    assert judge(none, at_least(0.9), 0.01) is Verdict.FAILS, "nothing meets no threshold"


@pytest.mark.parametrize("looks", [[], [0, 5], [5, 5], [7, 3]], ids=str)
def test_looks_must_increase(looks: list[int]) -> None:
    with pytest.raises(ValueError, match="increasing numbers of cases"):
        sequential_share(lambda start, stop: np.ones(stop - start, bool), at_least(0.5), 0.1, looks)


def test_error_is_shared_out_over_claims_and_models() -> None:
    n_criteria = sum(len(claim.criteria) for claim in CLAIMS)
    assert interval_alpha() * n_criteria == pytest.approx(FAMILY_ALPHA)
    assert interval_alpha(16) * 16 == pytest.approx(interval_alpha())
    with pytest.raises(ValueError, match="at least 1"):
        shared_alpha(0)


def test_pass_counts_leave_out_what_was_not_judged() -> None:
    verdicts = [("a", "holds"), ("b", "fails"), ("a", "undecided"), ("c", "skipped"), ("b", "holds"), ("a", "holds")]
    counts = {count.claim: count for count in pass_counts(verdicts)}
    assert {claim: (count.share.count, count.share.n) for claim, count in counts.items()} == {"a": (2, 3), "b": (1, 2)}
    assert counts["a"].interval == counts["a"].share.interval(FAMILY_ALPHA / 2), "corrected for two claims"
