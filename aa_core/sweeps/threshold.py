"""Where along a sweep a model begins to generalise: a logistic curve, and how far the data pin it down.

Accuracy is fitted as `bottom + (top - bottom) / (1 + exp((threshold - u) / width))` by least squares, with u = f, or
u = log r: a few thousandths of 2-variable sequences matter at r = 0.01 and nothing at r = 1. For each threshold and
width on a grid the best bottom and top follow in closed form, so the fit is the best on the grid, whatever the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from aa_core.circuits.dynamics import LEARNED
from aa_core.sweeps.curve import Curve
from aa_core.sweeps.grid import FREQUENCY, NAMES

THRESHOLDS = 150  # on the grid, between the least and the greatest u
WIDTHS = 8  # on the grid, from `SHARPEST` of the least distance of two u to a quarter of all
SHARPEST = 0.1
REPEATS = 1000
SEED = 0

Interval = tuple[float, float]


@dataclass(frozen=True)
class Logistic:
    """A fitted curve.

    Attributes:
        threshold: value of the field at which accuracy is half-way between `bottom` and `top`.
        width: of the step, in u.
        bottom: accuracy far below.
        top: accuracy far above.
        logarithmic: whether u is the logarithm of the field.
        explained: share of the variance of accuracy that the curve explains; nan where accuracy does not vary.
    """

    threshold: float
    width: float
    bottom: float
    top: float
    logarithmic: bool
    explained: float

    def __call__(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Accuracy at values of the field."""
        u, middle = (np.log(x), np.log(self.threshold)) if self.logarithmic else (x, self.threshold)
        return self.bottom + (self.top - self.bottom) * _step(u, middle, self.width)


@dataclass(frozen=True)
class Transition:
    """The fit of a sweep and what a bootstrap says of it.

    Attributes:
        fit: on all runs.
        half: interval of the value of the field at which accuracy is half-way.
        learned: interval of the value at which accuracy reaches 95 %; inf where it never does.
    """

    fit: Logistic
    half: Interval
    learned: Interval


def transition(curve: Curve, alpha: float) -> Transition:
    """Fit a sweep, with intervals of level `1 - alpha`.

    Each repeat of the bootstrap draws runs (seeds) with replacement at every value of the field. Between two values
    no curve knows where the step is, so the intervals also cover the gap around it: from the last value up to which
    every run is below, to the first from which every run is above.
    """
    logarithmic = curve.field == FREQUENCY
    values, y = curve.values, curve.y
    u = np.log(values) if logarithmic else values
    if len(values) < 2:  # nothing to fit
        unknown = float("nan")
        nothing = Logistic(unknown, unknown, unknown, unknown, logarithmic, unknown)
        return Transition(nothing, (unknown, unknown), (unknown, unknown))
    thresholds, widths, bottoms, tops = _fits(u, curve.n_repeats, _resampled(curve))
    fit = _logistic(thresholds[0], widths[0], bottoms[0], tops[0], curve, logarithmic=logarithmic)
    rise = np.clip((LEARNED - bottoms) / np.maximum(tops - bottoms, 1e-9), 0, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        reached = np.where(rise < 1, thresholds + widths * np.log(rise / (1 - rise)), np.inf)
    reached = np.maximum(reached, u[0])
    back = np.exp if logarithmic else np.asarray
    half = _interval(back(thresholds[1:]), alpha, _gap(curve, y >= (fit.bottom + fit.top) / 2))
    learned = _interval(back(reached[1:]), alpha, _gap(curve, y >= LEARNED))
    return Transition(fit, half, learned)


def interval_text(interval: Interval, values: Float[np.ndarray, " values"]) -> str:
    """An interval, where an end that the data leave open is beyond the first or last of the values."""
    low = f"<{values[0]:g}" if interval[0] == -np.inf else f"{interval[0]:.3g}"
    high = f">{values[-1]:g}" if interval[1] == np.inf else f"{interval[1]:.3g}"
    return f"[{low}, {high}]"


def fit_text(curve: Curve, found: Transition) -> str:
    """The fitted curve and, where runs of several seeds tell them, the intervals of its threshold: a sentence."""
    name, fit = next(name for name, field in NAMES.items() if field == curve.field), found.fit
    half, learned = (interval_text(interval, curve.values) for interval in (found.half, found.learned))
    over_seeds = curve.n_repeats.max() > 1
    intervals = f"{half} and at 95 % within {learned}" if over_seeds else "(one run a value gives no interval)"
    return (
        f"A logistic curve in {'log ' if fit.logarithmic else ''}{name} from {fit.bottom:.3f} to {fit.top:.3f} "
        f"explains {fit.explained:.3f} of the variance; it is half-way at {name} = {fit.threshold:.3g} {intervals}."
    )


def _resampled(curve: Curve) -> Float[np.ndarray, "repeats values"]:
    """Mean accuracy at each value of the field; the first repeat is the data themselves."""
    rng = np.random.default_rng(SEED)
    means = np.empty((REPEATS + 1, len(curve.values)))
    for column, value in enumerate(curve.values):
        runs = curve.y[curve.x == value]
        means[0, column] = runs.mean()
        means[1:, column] = runs[rng.integers(0, len(runs), (REPEATS, len(runs)))].mean(1)
    return means


def _fits(
    u: Float[np.ndarray, " values"], weights: Int[np.ndarray, " values"], means: Float[np.ndarray, "repeats values"]
) -> tuple[Float[np.ndarray, " repeats"], ...]:
    """Threshold and width (both in u), bottom and top of the best curve of each repeat that rises, from 0 at least."""
    span, least = u[-1] - u[0], np.diff(u).min()
    thresholds = np.linspace(u[0], u[-1], THRESHOLDS)
    widths = np.geomspace(SHARPEST * least, max(span / 4, least), WIDTHS)
    grid = np.stack(np.meshgrid(thresholds, widths, indexing="ij"), -1).reshape(-1, 2)
    step = _step(u, grid[:, :1], grid[:, 1:])
    total, y1, yy = weights.sum(), means @ weights, means**2 @ weights
    s1, ss, sy = step @ weights, step**2 @ weights, means @ (weights * step).T
    slope = np.maximum((sy * total - np.outer(y1, s1)) / np.maximum(ss * total - s1**2, 1e-9), 0)
    bottom = (y1[:, None] - slope * s1) / total
    slope = np.where(bottom < 0, sy / np.maximum(ss, 1e-9), slope)
    bottom = np.maximum(bottom, 0)
    error = yy[:, None] - 2 * (bottom * y1[:, None] + slope * sy) + bottom**2 * total + 2 * bottom * slope * s1
    best = (error + slope**2 * ss).argmin(1)
    rows = np.arange(len(best))
    return grid[best, 0], grid[best, 1], bottom[rows, best], (bottom + slope)[rows, best]


def _logistic(
    threshold: float, width: float, bottom: float, top: float, curve: Curve, *, logarithmic: bool
) -> Logistic:
    middle = float(np.exp(threshold)) if logarithmic else float(threshold)
    fit = Logistic(middle, float(width), float(bottom), float(top), logarithmic, float("nan"))
    spread = float(((curve.y - curve.y.mean()) ** 2).sum())
    if not spread:
        return fit
    left = float(((curve.y - fit(curve.x)) ** 2).sum())
    return Logistic(middle, fit.width, fit.bottom, fit.top, logarithmic, 1 - left / spread)


def _gap(curve: Curve, above: np.ndarray) -> Interval:
    """Last value up to which every run is below, and first from which every run is above; infinite without one."""
    first_above = curve.x[above].min(initial=np.inf)
    last_below = curve.x[~above].max(initial=-np.inf)
    return (
        float(curve.values[curve.values < first_above].max(initial=-np.inf)),
        float(curve.values[curve.values > last_below].min(initial=np.inf)),
    )


def _interval(repeats: Float[np.ndarray, " repeats"], alpha: float, gap: Interval) -> Interval:
    low, high = np.quantile(repeats, [alpha / 2, 1 - alpha / 2], method="closest_observation")
    return min(float(low), gap[0]), max(float(high), gap[1])


def _step(u: np.ndarray, threshold: np.ndarray | float, width: np.ndarray | float) -> np.ndarray:
    return 1 / (1 + np.exp(np.clip((threshold - u) / width, -50, 50)))
