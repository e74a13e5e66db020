"""Claims about sweeps of f and of r, judged on a curve: they can fail like those about models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from scipy import stats

from aa_core.circuits.dynamics import LEARNED
from aa_core.claims.claim import Claim, Criterion, Form, Result, Scope
from aa_core.claims.verification import verify
from aa_core.statistics import FAMILY_ALPHA, Measurement, NotApplicable, above, at_least, at_most, exact
from aa_core.sweeps.curve import Curve
from aa_core.sweeps.grid import FRACTION, FREQUENCY
from aa_core.sweeps.threshold import Interval, Transition, transition

BROKEN_BY = ("shuffled", "leaking")
INTERVALS = 4  # half-way and 95 % of two sweeps


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


def distance_outside(sweep: SweepSubject, paper: float, interval: Callable[[Transition], Interval]) -> Measurement:
    """How far the paper's value lies outside of an interval, 0 inside; nan where there is no interval."""
    low, high = interval(sweep.transition)
    outside = max(low - paper, paper - high, 0.0) if np.isfinite([low, high]).all() else float("nan")
    return exact(outside, len(sweep.curve.x), note=f"the data allow [{low:.3g}, {high:.3g}]")


def rise(sweep: SweepSubject) -> Measurement:
    """By how much the fitted accuracy rises over the values of the sweep."""
    ends = sweep.transition.fit(sweep.curve.values[[0, -1]])
    return exact(ends[1] - ends[0], len(sweep.curve.x), note=f"from {ends[0]:.3g} to {ends[1]:.3g}")


def explained(sweep: SweepSubject) -> Measurement:
    """Share of the variance of accuracy that the fitted curve explains."""
    return exact(sweep.transition.fit.explained, len(sweep.curve.x))


def at_end(sweep: SweepSubject, end: int) -> Measurement:
    """Mean accuracy at the first (0) or last (-1) value, on what training never showed."""
    return exact(
        sweep.curve.y[sweep.curve.x == sweep.curve.values[end]].mean(), note=f"at {sweep.curve.values[end]:.3g}"
    )


def least_trained(sweep: SweepSubject) -> Measurement:
    """Least accuracy of all runs on what training shows."""
    return exact(sweep.curve.trained.min(), len(sweep.curve.x))


def delay_correlation(sweep: SweepSubject) -> Measurement:
    """Rank correlation of f with the steps to solve held-out sums over those to solve trained ones.

    Runs that never solve the held-out ones count as later than all others, those that never solve the trained ones
    not at all.

    Raises:
        NotApplicable: fewer than five runs solve the trained sums.
    """
    solved = ~np.isnan(sweep.curve.delay)
    if solved.sum() < 5:
        raise NotApplicable(f"{solved.sum()} runs solve the trained sums, too few for a correlation")
    ranks = stats.rankdata(sweep.curve.delay[solved])
    if len(np.unique(ranks)) == 1 or len(np.unique(sweep.curve.x[solved])) == 1:
        return exact(float("nan"), int(solved.sum()), note="it does not vary")
    return exact(float(np.corrcoef(stats.rankdata(sweep.curve.x[solved]), ranks)[0, 1]), int(solved.sum()))


def longest_delay(sweep: SweepSubject) -> Measurement:
    """Largest ratio of those steps among runs that solve both; nan without one."""
    both = sweep.curve.delay[np.isfinite(sweep.curve.delay)]
    return exact(both.max() if len(both) else float("nan"), len(both), note=f"{len(both)} runs solve both")


RISES = Criterion("rise of the fitted accuracy over the sweep", rise, at_least(0.5))
EXPLAINED = Criterion("variance of accuracy that a logistic curve explains", explained, at_least(0.8))


def _threshold_claims(field: str, name: str, paper: float, what: str) -> tuple[Claim, ...]:
    return (
        Claim(
            id=f"sweep-{name}/transition",
            statement=f"{what} generalise above a threshold of {name} and not below it.",
            paper=f"Generalisation needs {name} of about {paper} (sweep over {name}).",
            form=Form.CONTROLLED,
            criterion=EXPLAINED,
            conditions=(RISES,),
            evidence="lr 3e-3, seed 0: .998 (f), 1.000 (r); shuffled at most .2",
            broken_by=BROKEN_BY,
            scope=Scope.SWEEP,
        ),
        Claim(
            id=f"sweep-{name}/half-way",
            statement=f"Accuracy is half-way up at {name} = {paper}, as far as the data can tell.",
            paper=f"As sweep-{name}/transition.",
            form=Form.LITERAL,
            criterion=Criterion(
                f"distance of {paper} from the interval of the value at half of the rise",
                partial(distance_outside, paper=paper, interval=_half),
                at_most(0),
            ),
            conditions=(RISES, EXPLAINED),
            evidence="lr 3e-3, seed 0: [.25, .3] (f), [.01, .05] (r): the paper's r is where accuracy is high",
            broken_by=BROKEN_BY,
            scope=Scope.SWEEP,
        ),
        Claim(
            id=f"sweep-{name}/learned",
            statement=f"Accuracy reaches 95 % at {name} = {paper}, as far as the data can tell.",
            paper=f"As sweep-{name}/transition.",
            form=Form.LITERAL,
            criterion=Criterion(
                f"distance of {paper} from the interval of the value at which accuracy reaches {LEARNED}",
                partial(distance_outside, paper=paper, interval=_learned),
                at_most(0),
            ),
            conditions=(RISES, EXPLAINED),
            evidence="lr 3e-3, seed 0: [.25, .3] (f), [.05, .2] (r)",
            broken_by=BROKEN_BY,
            scope=Scope.SWEEP,
        ),
        Claim(
            id=f"sweep-{name}/high-end",
            statement=f"{what} are right at the largest {name}.",
            paper=f"As sweep-{name}/transition.",
            form=Form.LITERAL,
            criterion=Criterion(
                f"mean accuracy on them at the largest {name}", partial(at_end, end=-1), at_least(LEARNED)
            ),
            evidence="lr 3e-3, seed 0: .99 (f = .7), .99 (r = 1)",
            broken_by=("shuffled",),
            scope=Scope.SWEEP,
        ),
    )


SWEEP_CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    FRACTION: (
        *_threshold_claims(FRACTION, "f", 0.25, "Sums of held-out pairs"),
        Claim(
            id="sweep-f/memorises",
            statement="With few pairs in training these are memorised: all of them right, and few of the others.",
            paper="As sweep-f/transition.",
            form=Form.CONTROLLED,
            criterion=Criterion(
                "mean accuracy on held-out pairs at the smallest f", partial(at_end, end=0), at_most(0.5)
            ),
            conditions=(Criterion("least accuracy of all runs on trained pairs", least_trained, at_least(LEARNED)),),
            evidence="lr 3e-3, seed 0: .09 at f = .1; trained pairs 1.000 at every f",
            broken_by=("leaking",),
            scope=Scope.SWEEP,
        ),
        Claim(
            id="sweep-f/grokking",
            statement="The fewer pairs in training, the later held-out sums follow the trained ones.",
            paper="Addition generalises after it fits the training pairs, as in grokking (training dynamics).",
            form=Form.CONTROLLED,
            criterion=Criterion(
                "rank correlation of f with steps to solve held-out over steps to solve trained sums",
                delay_correlation,
                at_most(-0.5),
            ),
            conditions=(Criterion("longest of these delays, as a ratio", longest_delay, above(1)),),
            evidence="to be measured; grokking in modular addition: the delay falls as f grows",
            broken_by=BROKEN_BY,
            scope=Scope.SWEEP,
        ),
    ),
    FREQUENCY: (
        *_threshold_claims(FREQUENCY, "r", 0.2, "Sums of two variables that training never shows"),
        Claim(
            id="sweep-r/low-end",
            statement="With hardly any sequences of two variables, new ones are not solved.",
            paper="As sweep-r/transition.",
            form=Form.CONTROLLED,
            criterion=Criterion(
                "mean accuracy on new 2-var sums at the smallest r", partial(at_end, end=0), at_most(0.5)
            ),
            evidence="lr 3e-3, seed 0: .02 at r = .01",
            broken_by=("leaking",),
            scope=Scope.SWEEP,
        ),
    ),
}


def verify_sweep(curve: Curve) -> list[Result]:
    """Judge the claims about the field that a sweep varies."""
    with np.errstate(invalid="ignore"):  # of two infinite ends, say: nan, and nan meets no threshold
        return verify(cast(Any, SweepSubject(curve)), SWEEP_CLAIMS[curve.field], FAMILY_ALPHA)
