"""Order of learning: addition first, then binding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from aa_core.circuits.accuracy import full_prefix_accuracy, pool_accuracy
from aa_core.circuits.dynamics import TrajectorySubject, crossing_order, crossing_ratio
from aa_core.claims.claim import Claim, Criterion, Form, Scope
from aa_core.statistics import Measurement, above, at_least
from aa_core.task.sampling import Kind

Curve = Callable[[TrajectorySubject], Float[np.ndarray, " steps"]]


def _pool(name: str) -> Curve:
    return lambda trajectory: trajectory.curve(pool_accuracy, name=name)


def _kind(kind: Kind) -> Curve:
    return lambda trajectory: trajectory.curve(full_prefix_accuracy, kind=kind)


def _ratio(early: Curve, late: Curve) -> Callable[[TrajectorySubject], Measurement]:
    return lambda trajectory: crossing_ratio(trajectory, early(trajectory), late(trajectory))


def _order(early: Curve, late: Curve) -> Callable[[TrajectorySubject], Measurement]:
    return lambda trajectory: crossing_order(trajectory, early(trajectory), late(trajectory))


CLAIMS = (
    Claim(
        id="order/0-var-before-1-var",
        statement="Sums of constants are learned before sums with one variable.",
        paper="The model first learns modular addition, then variable assignment (abstract; training dynamics).",
        form=Form.LITERAL,
        criterion=Criterion(
            "steps to 95 % on 1-var/seen, over steps to 95 % on 0-var/seen",
            _order(_pool("0-var/seen"), _pool("1-var/seen")),
            above(1),
        ),
        evidence="authors' run: 401 and 5401",
        broken_by=("reversed-trajectory", "random-trajectory"),
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/0-var-before-1R",
        statement="Sums of constants are learned before sums with a variable on the right.",
        paper="As order/0-var-before-1-var.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % on full prefixes of 1R, over those of 0-var",
            _order(_kind(Kind.ZERO), _kind(Kind.RIGHT)),
            above(1),
        ),
        evidence="authors' run: 401 and 4701",
        broken_by=("reversed-trajectory", "random-trajectory"),
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/0-var-before-1L",
        statement="Sums of constants are learned before sums with a variable on the left.",
        paper="As order/0-var-before-1-var.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % on full prefixes of 1L, over those of 0-var",
            _order(_kind(Kind.ZERO), _kind(Kind.LEFT)),
            above(1),
        ),
        evidence="authors' run: 401 and 5501",
        broken_by=("reversed-trajectory", "random-trajectory"),
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/2-var-last",
        statement="Sums of two variables are not learned before either sum of one variable.",
        paper="Composition on two variables follows variable assignment (training dynamics).",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % on full prefixes of 2-var, over those of 1L",
            _ratio(_kind(Kind.LEFT), _kind(Kind.TWO)),
            at_least(1),
        ),
        conditions=(Criterion("the same, over those of 1R", _ratio(_kind(Kind.RIGHT), _kind(Kind.TWO)), at_least(1)),),
        evidence="authors' run: 4701 (1R), 5501 (1L), 6101 (2-var)",
        broken_by=("reversed-trajectory", "random-trajectory"),
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/binding-takes-longer",
        statement="Binding two variables takes at least three times as many steps as addition.",
        paper="As order/0-var-before-1-var.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % on full prefixes of 2-var, over those of 0-var",
            _order(_kind(Kind.ZERO), _kind(Kind.TWO)),
            at_least(3),
        ),
        evidence="authors' run: 401 and 6101, a ratio of 15",
        broken_by=("reversed-trajectory", "random-trajectory"),
        scope=Scope.TRAJECTORY,
    ),
)
