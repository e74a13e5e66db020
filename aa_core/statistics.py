"""Measured quantities, their intervals, and verdicts; the one place that owns the error rate.

Every sampled quantity of a verification gets an interval at the same level, Bonferroni-corrected so that with
probability at least `1 - FAMILY_ALPHA` all intervals of one verification, over all claims and all models that are
judged together, cover their true values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
from scipy import stats

FAMILY_ALPHA = 0.01


def shared_alpha(n_intervals: int) -> float:
    """Error rate of each of so many intervals that together have `FAMILY_ALPHA` (Bonferroni).

    Raises:
        ValueError: there is no interval.
    """
    if n_intervals < 1:
        raise ValueError(f"n_intervals is {n_intervals}, expected at least 1")
    return FAMILY_ALPHA / n_intervals


class NotApplicable(Exception):
    """Raised by a measurement that has no meaning for a model through no fault of the model; says why."""


class Verdict(StrEnum):
    """What is known of a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Measurement:
    """A measured value.

    Attributes:
        value: the point estimate; nan where the quantity is undefined for the model.
        n: cases behind it, None for a property of the weights alone.
        count: successes among `n` where the value is a share, else None.
        spread: standard error of a sampled mean, else None.
        exhaustive: the cases are all there are, so the value has no sampling error.
        note: what a reader should see beside the number.
    """

    value: float
    n: int | None = None
    count: int | None = None
    spread: float | None = None
    exhaustive: bool = False
    note: str = ""

    def interval(self, alpha: float) -> tuple[float, float] | None:
        """Two-sided interval of level `1 - alpha`: exact (Clopper-Pearson) for a share, Student's t for a mean.

        The mean of a single case says nothing of others: its interval has no ends.
        None where the value has no sampling error, or none is known.
        """
        if self.exhaustive or self.n is None or np.isnan(self.value):
            return None
        if self.n < 1:
            return None
        if self.count is not None:
            exact = stats.binomtest(self.count, self.n).proportion_ci(1 - alpha, method="exact")
            return float(exact.low), float(exact.high)
        if self.spread is not None:
            if self.n == 1:
                return -math.inf, math.inf
            half = float(stats.t.ppf(1 - alpha / 2, self.n - 1)) * self.spread
            return self.value - half, self.value + half
        return None


def share(successes: np.ndarray, *, exhaustive: bool = False, note: str = "") -> Measurement:
    """The share of True in a bool array."""
    n, count = successes.size, int(successes.sum())
    return Measurement(count / n if n else float("nan"), n, count, exhaustive=exhaustive, note=note)


def mean(values: np.ndarray, note: str = "") -> Measurement:
    """The mean of independent draws."""
    n = len(values)
    if n < 2:
        return Measurement(float(values.sum()) if n else math.nan, n, spread=math.inf, note=note)
    return Measurement(float(np.mean(values)), n, spread=float(np.std(values, ddof=1)) / n**0.5, note=note)


def exact(value: float, n: int | None = None, note: str = "") -> Measurement:
    """A quantity taken as it is, without an interval."""
    return Measurement(float(value), n, note=note)


@dataclass(frozen=True)
class Threshold:
    """What a value must satisfy, such as `>= 0.95`."""

    comparison: Literal[">=", ">", "<="]
    bound: float

    def accepts(self, value: float) -> bool:
        """Whether a value satisfies it; nan never does."""
        if self.comparison == ">=":
            return value >= self.bound
        if self.comparison == ">":
            return value > self.bound
        return value <= self.bound

    def __str__(self) -> str:
        return f"{self.comparison} {self.bound:g}"


def at_least(bound: float) -> Threshold:
    """Values of at least `bound`."""
    return Threshold(">=", bound)


def above(bound: float) -> Threshold:
    """Values above `bound`."""
    return Threshold(">", bound)


def at_most(bound: float) -> Threshold:
    """Values of at most `bound`."""
    return Threshold("<=", bound)


def judge(measurement: Measurement, threshold: Threshold, alpha: float) -> Verdict:
    """Holds if every value of the interval satisfies the threshold, fails if none does, else undecided."""
    ends = measurement.interval(alpha) or (measurement.value,)
    accepted = [threshold.accepts(end) for end in ends]
    if all(accepted):
        return Verdict.HOLDS
    return Verdict.UNDECIDED if any(accepted) else Verdict.FAILS


def combined(verdicts: list[Verdict]) -> Verdict:
    """The verdict of a conjunction."""
    for verdict in (Verdict.FAILS, Verdict.UNDECIDED):
        if verdict in verdicts:
            return verdict
    return Verdict.HOLDS


@dataclass(frozen=True)
class Sequential:
    """What a test that stops early has found.

    Attributes:
        verdict: holds or fails where a look decided, undecided where none did.
        measurement: the share at the last look.
        interval: its interval, at the error rate of one look.
    """

    verdict: Verdict
    measurement: Measurement
    interval: tuple[float, float]


def sequential_share(
    draw: Callable[[int, int], np.ndarray], threshold: Threshold, alpha: float, looks: Sequence[int]
) -> Sequential:
    """Judge a share of successes with as few cases as decide it.

    At each look the exact interval of all cases so far is judged at `alpha / len(looks)`. The chance that any of them
    misses the true share, and so that the verdict is wrong, is at most `alpha`, whenever the test stops.

    Args:
        draw: from a half-open range of case numbers to their outcomes, bool; independent cases of one distribution.
        threshold: what the share must satisfy.
        alpha: error rate of the whole test.
        looks: total numbers of cases after which to look, increasing.

    Raises:
        ValueError: `looks` is empty or does not increase from at least 1.
    """
    if not looks or sorted({*looks}) != list(looks) or looks[0] < 1:
        raise ValueError(f"looks are {list(looks)}, expected increasing numbers of cases")
    count, found = 0, None
    for start, n in zip((0, *looks), looks, strict=False):
        count += int(draw(start, n).sum())
        measurement = Measurement(count / n, n, count)
        interval = measurement.interval(alpha / len(looks))
        assert interval is not None, "a count has one"
        found = Sequential(judge(measurement, threshold, alpha / len(looks)), measurement, interval)
        if found.verdict is not Verdict.UNDECIDED:
            break
    assert found is not None, "there is a look"
    return found
