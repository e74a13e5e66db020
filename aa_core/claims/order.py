"""Order of learning: addition first, then binding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from aa_core.circuits.accuracy import full_prefix_accuracy, pool_accuracy
from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Claim, Criterion, Form, Scope
from aa_core.claims.verification import TrajectorySubject
from aa_core.statistics import Measurement, above, at_least, exact
from aa_core.task.sampling import Kind

LEARNED = 0.95

Accuracy = Callable[[Subject], Measurement]


def first_learned(trajectory: TrajectorySubject, accuracy: Accuracy) -> int | None:
    """First step at which an accuracy is at least .95, or None.

    First crossings, not the last time below: late in the paper's run accuracies dip for single checkpoints.
    """
    pairs = zip(trajectory.steps, trajectory.subjects, strict=True)
    return next((step for step, subject in pairs if accuracy(subject).value >= LEARNED), None)


def crossing_ratio(trajectory: TrajectorySubject, early: Accuracy, late: Accuracy) -> Measurement:
    """First step of `late` divided by first step of `early`; nan where either is never learned."""
    first, second = first_learned(trajectory, early), first_learned(trajectory, late)
    note = f"first at step {first}, then at step {second}"
    if first is None or second is None:
        return exact(float("nan"), len(trajectory.steps), note=note.replace("step None", "no step"))
    return exact(second / max(first, 1), len(trajectory.steps), note=note)


def _pool(name: str) -> Accuracy:
    return partial(pool_accuracy, name=name)


def _kind(kind: Kind) -> Accuracy:
    return partial(full_prefix_accuracy, kind=kind)


def _ratio(early: Accuracy, late: Accuracy) -> Callable[[TrajectorySubject], Measurement]:
    return partial(crossing_ratio, early=early, late=late)


CLAIMS = (
    Claim(
        id="order/0-var-before-1-var",
        statement="Sums of constants are learned before sums with one variable.",
        paper="The model first learns modular addition, then variable assignment (abstract; training dynamics).",
        form=Form.LITERAL,
        criterion=Criterion(
            "steps to 95 % on 1-var/seen, over steps to 95 % on 0-var/seen",
            _ratio(_pool("0-var/seen"), _pool("1-var/seen")),
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
            _ratio(_kind(Kind.ZERO), _kind(Kind.RIGHT)),
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
            _ratio(_kind(Kind.ZERO), _kind(Kind.LEFT)),
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
            _ratio(_kind(Kind.ZERO), _kind(Kind.TWO)),
            at_least(3),
        ),
        evidence="authors' run: 401 and 6101, a ratio of 15",
        broken_by=("reversed-trajectory", "random-trajectory"),
        scope=Scope.TRAJECTORY,
    ),
)
