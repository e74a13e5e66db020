"""Measures along training on curves that are known, and claims that do not apply."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from aa_core.circuits.dynamics import TrajectorySubject, crossing_ratio, first_reached, sudden_rise
from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Claim, Criterion, Form, Scope
from aa_core.claims.verification import verify
from aa_core.statistics import Measurement, NotApplicable, Verdict, at_least, exact
from circuit_tests.meta.compiled_model import compiled_subject


def along(*steps: int) -> TrajectorySubject:
    return TrajectorySubject(steps, (compiled_subject(),) * len(steps))


def ratio(trajectory: TrajectorySubject, early: list[float], late: list[float]) -> float:
    return crossing_ratio(trajectory, np.array(early), np.array(late)).value


def test_steps_must_increase_one_a_subject() -> None:
    subject = compiled_subject()
    for steps in ((2, 1), (1, 1), (1,)):
        with pytest.raises(ValueError, match="steps must increase"):
            TrajectorySubject(steps, (subject, subject))


def test_first_reached_is_the_first_crossing_whatever_follows() -> None:
    assert first_reached(np.array([0.1, 0.95, 0.2, 1.0])) == 1
    assert first_reached(np.array([0.1, 0.6, 0.2]), level=0.6) == 1
    assert first_reached(np.array([0.1, 0.949])) is None
    assert first_reached(np.array([np.nan, 1.0])) == 1


def test_crossing_ratio_divides_steps() -> None:
    trajectory = along(0, 100, 200, 400)
    assert ratio(trajectory, [0, 1, 1, 1], [0, 0, 0, 1]) == 4
    assert ratio(trajectory, [0, 0, 0, 1], [0, 1, 1, 1]) == 0.25
    assert ratio(trajectory, [1, 1, 1, 1], [0, 1, 1, 1]) == 100, "step 0 counts as 1"


def test_crossing_ratio_is_nan_for_what_is_never_learned() -> None:
    trajectory = along(0, 100)
    assert np.isnan(ratio(trajectory, [0, 1], [0, 0]))
    assert np.isnan(ratio(trajectory, [0, 0], [0, 1]))
    assert "at step 100, then never" in crossing_ratio(trajectory, np.array([0, 1]), np.array([0, 0])).note


def test_an_order_is_undecidable_only_across_a_wide_gap() -> None:
    together = np.array([0, 0, 1]), np.array([0, 0, 1])
    with pytest.raises(NotApplicable, match="between steps 100 and 200"):
        crossing_ratio(along(0, 100, 200), *together)
    assert crossing_ratio(along(0, 100, 120), *together).value == 1
    assert ratio(along(0, 100), [1, 1], [1, 1]) == 1, "both there from the start: nothing comes first"


def test_sudden_rise_is_the_shortest_window_with_most_of_the_rise() -> None:
    curve = np.array([[0.1, 0.2, 0.2, 0.95, 1.0]])
    rise = sudden_rise(along(1000, 1050, 1100, 1150, 1200), curve)
    assert (rise.curve, rise.start, rise.end) == (0, 2, 3)
    assert rise.height == pytest.approx(0.75)


def test_windows_scale_with_the_steps_made() -> None:
    curve = np.array([[0.0, 0.3, 0.6]])
    slow, fast = along(1000, 1500, 2000), along(2000, 2250, 2500)
    assert sudden_rise(slow, curve).height == pytest.approx(0.3), "half of all steps is not sudden"
    assert sudden_rise(fast, curve).height == pytest.approx(0.6), "a fifth is"


def test_the_curve_that_rises_most_is_chosen() -> None:
    curves = np.array([[0.0, 0.2, 0.5, 1.0], [0.1, 0.1, 1.0, 1.0]])
    rise = sudden_rise(along(1000, 1100, 1200, 1300), curves)
    assert (rise.curve, rise.start, rise.end) == (1, 1, 2)


def test_a_fall_is_no_rise() -> None:
    assert sudden_rise(along(1000, 1100, 1200), np.array([[1.0, 0.2, 0.1]])).height == 0


def test_a_rise_between_distant_neighbours_is_undecidable() -> None:
    with pytest.raises(NotApplicable, match="steps 1000 and 4000"):
        sudden_rise(along(1000, 4000, 4100), np.array([[0.1, 0.9, 1.0], [0.1, 0.2, 0.3]]))
    assert sudden_rise(along(1000, 4000, 4100), np.array([[0.1, 0.3, 0.4]])).height == pytest.approx(0.1)
    late = sudden_rise(along(1000, 4000, 4100), np.array([[0.1, 0.9, 1.0], [0.1, 0.3, 0.9]]))
    assert (late.curve, late.height) == (1, pytest.approx(0.6)), "a rise that can be seen counts"


def scale(subject: Subject, factor: float = 1) -> Measurement:
    return exact(factor * float(subject.parameters["embed.W_E"].abs().max()))


def test_curves_follow_steps_and_are_measured_once() -> None:
    calls: list[Subject] = []

    def measure(subject: Subject, factor: float = 1) -> Measurement:
        calls.append(subject)
        return scale(subject, factor)

    good = compiled_subject()
    double = Subject({**good.parameters, "embed.W_E": 2 * good.parameters["embed.W_E"]}, good.split, good.data)
    trajectory = TrajectorySubject((0, 10), (good, double))
    assert trajectory.curve(measure).tolist() == [1, 2]
    assert trajectory.curve(measure).tolist() == [1, 2]
    assert len(calls) == 2
    assert trajectory.curve(measure, factor=3).tolist() == [3, 6], "other arguments are another curve"


def test_curves_let_go_of_what_a_model_computed() -> None:
    kept: list[weakref.ref[Subject]] = []

    def measure(subject: Subject) -> Measurement:
        kept.append(weakref.ref(subject))
        return scale(subject)

    trajectory = along(0, 10)
    trajectory.curve(measure)
    gc.collect()
    assert [ref() for ref in kept] == [None, None]


def test_a_claim_that_does_not_apply_is_skipped_with_the_reason() -> None:
    def measure(subject: Subject) -> Measurement:
        raise NotApplicable("no letter")

    criteria = [Criterion("", scale, at_least(5)), Criterion("", measure, at_least(0))]
    for criterion, condition in (criteria, criteria[::-1]):
        claim = Claim("a/b", "", "", Form.LITERAL, criterion, "", (), (condition,))
        [result] = verify(compiled_subject(), [claim], 0.01)
        assert (result.verdict, result.reason, result.findings) == (Verdict.SKIPPED, "no letter", ())


def test_a_trajectory_claim_needs_a_trajectory_and_a_checkpoint_claim_takes_its_last_model() -> None:
    good = compiled_subject()
    double = Subject({**good.parameters, "embed.W_E": 2 * good.parameters["embed.W_E"]}, good.split, good.data)
    claim = Claim("a/b", "", "", Form.LITERAL, Criterion("", scale, at_least(2)), "", ())
    assert verify(TrajectorySubject((0, 1), (good, double)), [claim], 0.01)[0].verdict is Verdict.HOLDS
    assert verify(TrajectorySubject((0, 1), (double, good)), [claim], 0.01)[0].verdict is Verdict.FAILS
    along_training = Claim("a/b", "", "", Form.LITERAL, claim.criterion, "", (), scope=Scope.TRAJECTORY)
    assert verify(good, [along_training], 0.01)[0].verdict is Verdict.SKIPPED
