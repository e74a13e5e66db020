"""Claims about sweeps of f and of r, judged on a curve: they can fail like those about models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from jaxtyping import Float
from scipy import stats

from aa_core.circuits.dynamics import LEARNED
from aa_core.claims.claim import Claim, Criterion, Form, Result, Scope
from aa_core.claims.verification import verify
from aa_core.statistics import FAMILY_ALPHA, Measurement, NotApplicable, above, at_least, at_most, exact
from aa_core.sweeps.curve import Curve
from aa_core.sweeps.grid import FRACTION, FREQUENCY
from aa_core.sweeps.threshold import Interval, Transition, interval_text, transition

BROKEN_BY = ("shuffled", "leaking", "reversed")
INTERVALS = 4  # half-way and 95 % of two sweeps
PARAMETERS = 4  # of the fitted curve
PAPER: Mapping[str, str] = {
    FRACTION: "Sums of pairs that training never shows are solved only from about 25 % of all pairs (sweep over f).",
    FREQUENCY: "New sums of two variables are solved only from a relative frequency of about 20 % (sweep over r).",
}


@dataclass(frozen=True)
class SweepSubject:
    """A curve, with its fit at the level that all intervals of both sweeps share."""

    curve: Curve

    @cached_property
    def transition(self) -> Transition:
        """The fit."""
        return transition(self.curve, FAMILY_ALPHA / INTERVALS)


def _half(found: Transition) -> Interval:
    return found.half


def _learned(found: Transition) -> Interval:
    return found.learned


def _over_seeds(sweep: SweepSubject, interval: Callable[[Transition], Interval]) -> Interval:
    """An interval of the fit, which is one over seeds.

    Raises:
        NotApplicable: there is one run a value, so that nothing says how much runs differ.
    """
    if sweep.curve.n_repeats.max() < 2:
        raise NotApplicable("one run a value says nothing of how much runs differ: make the sweep with --seeds 0-1")
    return interval(sweep.transition)


def distance_outside(sweep: SweepSubject, paper: float, interval: Callable[[Transition], Interval]) -> Measurement:
    """How far the paper's value lies outside of an interval, 0 inside; nan where there is no interval.

    Raises:
        NotApplicable: there is one run a value.
    """
    low, high = _over_seeds(sweep, interval)
    outside = max(low - paper, paper - high, 0.0) if not np.isnan([low, high]).any() else float("nan")
    allowed = interval_text((low, high), sweep.curve.values)
    return exact(outside, len(sweep.curve.x), note=f"the data allow {allowed}")


def rise(sweep: SweepSubject) -> Measurement:
    """By how much the fitted accuracy rises over the values of the sweep."""
    ends = sweep.transition.fit(sweep.curve.values[[0, -1]])
    return exact(ends[1] - ends[0], len(sweep.curve.x), note=f"from {ends[0]:.3g} to {ends[1]:.3g}")


def explained(sweep: SweepSubject) -> Measurement:
    """Share of the variance of accuracy that the fitted curve explains.

    Raises:
        NotApplicable: there are too few values for the four parameters of the curve.
    """
    if len(sweep.curve.values) < PARAMETERS + 1:
        raise NotApplicable(f"a curve of {PARAMETERS} parameters passes through any {len(sweep.curve.values)} values")
    return exact(sweep.transition.fit.explained, len(sweep.curve.x))


def step_width(sweep: SweepSubject) -> Measurement:
    """Over what share of the sweep the fitted curve goes from 10 % to 90 % of its rise: .8 for a straight line or more.

    Shares are of f, or of log r.
    """
    fit, (first, last) = sweep.transition.fit, sweep.curve.values[[0, -1]]
    span = np.log(last / first) if fit.logarithmic else last - first
    return exact(2 * np.log(9) * fit.width / span, len(sweep.curve.x))


def interval_width(sweep: SweepSubject, interval: Callable[[Transition], Interval]) -> Measurement:
    """How much of the sweep an interval covers, as a share of f or of log r.

    Raises:
        NotApplicable: there is one run a value.
    """
    ends = np.clip(_over_seeds(sweep, interval), *sweep.curve.values[[0, -1]])
    scale = np.log if sweep.transition.fit.logarithmic else np.asarray
    low, high, first, last = scale([*ends, *sweep.curve.values[[0, -1]]])
    return exact((high - low) / (last - first), len(sweep.curve.x))


def at_end(sweep: SweepSubject, end: int) -> Measurement:
    """Mean accuracy at the first (0) or last (-1) value, on what training never showed."""
    return exact(
        sweep.curve.y[sweep.curve.x == sweep.curve.values[end]].mean(), note=f"at {sweep.curve.values[end]:.3g}"
    )


def least_trained(sweep: SweepSubject) -> Measurement:
    """Least accuracy of all runs on what training shows."""
    return exact(sweep.curve.trained.min(), len(sweep.curve.x))


def rank_correlation(sweep: SweepSubject, outcome: Callable[[Curve], Float[np.ndarray, " points"]]) -> Measurement:
    """Rank correlation of the swept field with an outcome, which may be infinite; runs where it is nan are left out.

    Raises:
        NotApplicable: fewer than five runs are left.
    """
    y = outcome(sweep.curve)
    known = ~np.isnan(y)
    if known.sum() < 5:
        raise NotApplicable(f"{known.sum()} runs are too few for a correlation")
    x, ranks = stats.rankdata(sweep.curve.x[known]), stats.rankdata(y[known])
    if len(np.unique(ranks)) == 1 or len(np.unique(x)) == 1:
        return exact(float("nan"), int(known.sum()), note="it does not vary")
    return exact(float(np.corrcoef(x, ranks)[0, 1]), int(known.sum()))


def least_from(sweep: SweepSubject, value: float) -> Measurement:
    """Least accuracy, on what training never shows, of all runs from a value of the field up.

    Raises:
        NotApplicable: there is none.
    """
    y = sweep.curve.y[sweep.curve.x >= value]
    if not len(y):
        raise NotApplicable(f"no run from {value} up")
    return exact(y.min(), len(y))


def longest_delay(sweep: SweepSubject) -> Measurement:
    """Largest ratio of those steps among runs that solve both; nan without one."""
    both = sweep.curve.delay[np.isfinite(sweep.curve.delay)]
    return exact(both.max() if len(both) else float("nan"), len(both), note=f"{len(both)} runs solve both")


RISES = Criterion("rise of the fitted accuracy over the sweep", rise, at_least(0.5))
EXPLAINED = Criterion("variance of accuracy that a logistic curve explains", explained, at_least(0.8))
MORE = Criterion(
    "rank correlation of the field with accuracy",
    partial(rank_correlation, outcome=lambda curve: curve.y),
    at_least(0.5),
)
STEEP = Criterion("share of the sweep over which the curve takes its step", step_width, at_most(0.5))


def _pinned(interval: Callable[[Transition], Interval]) -> Criterion:
    """Without this the paper's value would lie in any interval that is wide enough."""
    measure = partial(interval_width, interval=interval)
    return Criterion("share of the sweep that the interval covers", measure, at_most(0.4))


def _threshold_claims(field: str, name: str, paper: float, what: str) -> tuple[Claim, ...]:
    words = PAPER[field]
    return (
        Claim(
            id=f"sweep-{name}/transition",
            statement=f"{what} generalise above a threshold of {name} and not below it.",
            paper=words,
            form=Form.CONTROLLED,
            criterion=EXPLAINED,
            conditions=(RISES, STEEP),
            evidence="docs/sweeps: .989, in .12 of the sweep (f); .974, by .20 in .38 (r); shuffled .03, .04",
            broken_by=BROKEN_BY,
            scope=Scope.SWEEP,
        ),
        Claim(
            id=f"sweep-{name}/half-way",
            statement=f"Accuracy is half-way up at {name} = {paper}, as far as the data can tell.",
            paper=words,
            form=Form.LITERAL,
            criterion=Criterion(
                f"distance of {paper} from the interval of the value at half of the rise",
                partial(distance_outside, paper=paper, interval=_half),
                at_most(0),
            ),
            conditions=(RISES, EXPLAINED, _pinned(_half)),
            evidence="docs/sweeps: [.163, .267] (f), [.02, .053] (r)",
            broken_by=BROKEN_BY,
            scope=Scope.SWEEP,
        ),
        Claim(
            id=f"sweep-{name}/learned",
            statement=f"Accuracy reaches 95 % at {name} = {paper}, as far as the data can tell.",
            paper=words,
            form=Form.LITERAL,
            criterion=Criterion(
                f"distance of {paper} from the interval of the value at which accuracy reaches {LEARNED}",
                partial(distance_outside, paper=paper, interval=_learned),
                at_most(0),
            ),
            conditions=(RISES, EXPLAINED, _pinned(_learned)),
            evidence="docs/sweeps: [.247, .473] (f), [.05, .1] (r)",
            broken_by=BROKEN_BY,
            scope=Scope.SWEEP,
        ),
        Claim(
            id=f"sweep-{name}/high-end",
            statement=f"{what} are right at the largest {name}.",
            paper=words,
            form=Form.LITERAL,
            criterion=Criterion(
                f"mean accuracy on them at the largest {name}", partial(at_end, end=-1), at_least(LEARNED)
            ),
            evidence="docs/sweeps: 1.000 (f), .998 (r)",
            broken_by=("reversed",),
            scope=Scope.SWEEP,
        ),
    )


SWEEP_CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    FRACTION: (
        *_threshold_claims(FRACTION, "f", 0.25, "Sums of held-out pairs"),
        Claim(
            id="sweep-f/memorises",
            statement="With few pairs in training these are memorised: all of them right, and few of the others.",
            paper=PAPER[FRACTION],
            form=Form.CONTROLLED,
            criterion=Criterion(
                "mean accuracy on held-out pairs at the smallest f", partial(at_end, end=0), at_most(0.5)
            ),
            conditions=(Criterion("least accuracy of all runs on trained pairs", least_trained, at_least(LEARNED)),),
            evidence="docs/sweeps: .055 at f = .06; trained pairs 1.000 at every f",
            broken_by=("leaking", "reversed"),
            scope=Scope.SWEEP,
        ),
        Claim(
            id="sweep-f/grokking",
            statement="The fewer pairs in training, the later held-out sums follow the trained ones.",
            paper="Addition generalises after it fits the training pairs, as in grokking (training dynamics).",
            form=Form.CONTROLLED,
            criterion=Criterion(
                "rank correlation of f with steps to solve held-out over steps to solve trained sums",
                partial(rank_correlation, outcome=lambda curve: curve.delay),
                at_most(-0.5),
            ),
            conditions=(Criterion("longest of these delays, as a ratio", longest_delay, above(1)),),
            evidence="docs/sweeps: -.96; 19 times as many steps at f = .37, 9 at .47, 1.2 at .99",
            broken_by=BROKEN_BY,
            scope=Scope.SWEEP,
        ),
    ),
    FREQUENCY: (
        *_threshold_claims(FREQUENCY, "r", 0.2, "Sums of two variables that training never shows"),
        Claim(
            id="sweep-r/low-end",
            statement="With hardly any sequences of two variables, new ones are not solved.",
            paper=PAPER[FREQUENCY],
            form=Form.CONTROLLED,
            criterion=Criterion(
                "mean accuracy on new 2-var sums at the smallest r", partial(at_end, end=0), at_most(0.5)
            ),
            evidence="docs/sweeps: .798 at r = .01, so this fails; lr 3e-3 for 10,000 steps, seed 0: .02",
            broken_by=("leaking", "reversed"),
            scope=Scope.SWEEP,
        ),
        Claim(
            id="sweep-r/enough",
            statement="From r = 0.2 up, every run solves sums of two variables that training never shows.",
            paper=PAPER[FREQUENCY],
            form=Form.CONTROLLED,
            criterion=Criterion(
                "least accuracy on them of all runs with r >= 0.2", partial(least_from, value=0.2), at_least(LEARNED)
            ),
            conditions=(MORE,),
            evidence="docs/sweeps: .978, correlation .97; shuffled .788, .14",
            broken_by=BROKEN_BY,
            scope=Scope.SWEEP,
        ),
        Claim(
            id="sweep-r/sooner",
            statement="The more sequences of two variables, the sooner full prefixes with two variables are solved.",
            paper=PAPER[FREQUENCY],
            form=Form.CONTROLLED,
            criterion=Criterion(
                "rank correlation of r with the step at which they are",
                partial(rank_correlation, outcome=lambda curve: curve.two_variable_steps),
                at_most(-0.5),
            ),
            evidence="docs/sweeps: -.95; never solved up to r = .05, by step 3,200 at .99; shuffled -.12",
            broken_by=("shuffled", "reversed"),
            scope=Scope.SWEEP,
        ),
    ),
}


def verify_sweep(curve: Curve) -> list[Result]:
    """Judge the claims about the field that a sweep varies."""
    with np.errstate(invalid="ignore"):  # of two infinite ends, say: nan, and nan meets no threshold
        return verify(cast(Any, SweepSubject(curve)), SWEEP_CLAIMS[curve.field], FAMILY_ALPHA)
