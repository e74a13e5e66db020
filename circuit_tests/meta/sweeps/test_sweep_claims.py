"""The threshold of a sweep and the claims about it, on results whose answer is known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from aa_core.errors import InputError
from aa_core.statistics import Verdict
from aa_core.sweeps.claims import SWEEP_CLAIMS, verify_sweep
from aa_core.sweeps.controls import SWEEP_CONTROLS, leaking, shuffled
from aa_core.sweeps.curve import Curve, curve
from aa_core.sweeps.grid import FRACTION, FREQUENCY
from aa_core.sweeps.threshold import transition
from circuit_tests.meta.sweeps.sweep_results import logistic, synthetic_sweep

LOW = (0.01, 0.02, 0.04, 0.08, 0.16, 0.3, 0.6, 0.99)


def in_log(threshold: float) -> Curve:
    steps = logistic(np.log(threshold), 0.3, 0.02)
    return curve(synthetic_sweep(lambda r: steps(np.log(r)), FREQUENCY, LOW))


@pytest.fixture(scope="module")
def sound() -> Curve:
    return curve(synthetic_sweep(logistic(0.25)))


def verdicts(judged: Curve) -> dict[str, Verdict]:
    return {result.claim.id: result.verdict for result in verify_sweep(judged)}


@pytest.mark.parametrize("threshold", [0.25, 0.4, 0.7])
@pytest.mark.parametrize("seeds", [1, 3])
def test_threshold_is_found_and_covered(threshold: float, seeds: int) -> None:
    found = transition(curve(synthetic_sweep(logistic(threshold, 0.04), seeds=seeds)), 0.01)
    assert found.fit.threshold == pytest.approx(threshold, abs=0.03)
    assert found.half[0] <= threshold <= found.half[1]
    assert found.half[1] - found.half[0] < 0.25, "the interval says next to nothing"
    assert found.fit.explained > 0.97
    assert found.fit.bottom == pytest.approx(0.1, abs=0.05)
    assert found.fit.top == pytest.approx(0.99, abs=0.03)


def test_one_run_a_value_says_nothing_of_an_interval() -> None:
    found = verdicts(curve(synthetic_sweep(logistic(0.25), seeds=1)))
    skipped = {claim for claim, verdict in found.items() if verdict is Verdict.SKIPPED}
    assert skipped == {"sweep-f/half-way", "sweep-f/learned"}


@pytest.mark.parametrize("threshold", [0.03, 0.2])
def test_threshold_of_a_frequency_is_fitted_in_its_logarithm(threshold: float) -> None:
    found = transition(in_log(threshold), 0.01)
    assert found.fit.threshold == pytest.approx(threshold, rel=0.2)
    assert found.half[0] <= threshold <= found.half[1]


def test_interval_covers_the_gap_in_which_a_step_is_not_seen() -> None:
    values = (0.1, 0.2, 0.5, 0.9)
    found = transition(curve(synthetic_sweep(lambda f: 0.1 if f < 0.3 else 0.99, values=values, noise=0)), 0.01)
    assert found.half == (0.2, 0.5)
    assert found.learned == (0.2, 0.5)


def test_seeds_that_disagree_widen_the_interval() -> None:
    agreeing = transition(curve(synthetic_sweep(logistic(0.5, 0.05), seeds=4, noise=0.005)), 0.01).half
    disagreeing = transition(curve(synthetic_sweep(logistic(0.5, 0.05), seeds=4, noise=0.15)), 0.01).half
    assert disagreeing[1] - disagreeing[0] > agreeing[1] - agreeing[0]


def test_accuracy_that_is_never_learned_has_no_upper_end() -> None:
    found = transition(curve(synthetic_sweep(logistic(0.3, top=0.8))), 0.01)
    assert found.learned[1] == np.inf


def failed(judged: Curve) -> set[str]:
    return {name for name, verdict in verdicts(judged).items() if verdict is not Verdict.HOLDS}


def test_claims_tell_where_the_threshold_is(sound: Curve) -> None:
    assert failed(sound) == {"sweep-f/learned"}, "half-way at .25, so 95 % is above it"
    assert failed(curve(synthetic_sweep(logistic(0.2, 0.015)))) == set(), "both are somewhere from .163 to .267"
    assert failed(curve(synthetic_sweep(logistic(0.6)))) == {"sweep-f/half-way", "sweep-f/learned"}
    assert failed(in_log(0.2)) == {"sweep-r/learned", "sweep-r/enough"}
    assert failed(in_log(0.03)) == {"sweep-r/half-way", "sweep-r/learned"}
    assert set(verdicts(sound)) == {claim.id for claim in SWEEP_CLAIMS[FRACTION]}


@pytest.mark.parametrize("control", SWEEP_CONTROLS)
@pytest.mark.parametrize("field", [FRACTION, FREQUENCY])
def test_controls_break_what_they_were_made_to_break(control: str, field: str, sound: Curve) -> None:
    judged = sound if field == FRACTION else in_log(0.1)
    found = verdicts(SWEEP_CONTROLS[control](judged))
    made_for_it = {claim.id for claim in SWEEP_CLAIMS[field] if control in claim.broken_by}
    assert {name for name in made_for_it if found[name] is Verdict.HOLDS} == set()
    assert f"sweep-{'f' if field == FRACTION else 'r'}/transition" in made_for_it


@pytest.mark.parametrize("seed", range(10))
def test_every_shuffle_is_refused(seed: int, sound: Curve) -> None:
    found = verdicts(shuffled(sound, seed))
    assert found["sweep-f/transition"] is Verdict.FAILS
    assert found["sweep-f/half-way"] is Verdict.FAILS


def test_leak_is_refused_for_its_flatness(sound: Curve) -> None:
    [result] = [result for result in verify_sweep(leaking(sound)) if result.claim.id == "sweep-f/transition"]
    failed = [finding.criterion.quantity for finding in result.findings if finding.verdict is Verdict.FAILS]
    assert "rise of the fitted accuracy over the sweep" in failed


def test_models_that_never_fit_their_training_do_not_memorise(sound: Curve) -> None:
    untrained = tuple(
        dataclasses.replace(record, accuracies={**record.accuracies, "exact/0-var/seen": (100, 2000)})
        for record in sound.records
    )
    assert verdicts(dataclasses.replace(sound, records=untrained))["sweep-f/memorises"] is Verdict.FAILS


def test_one_value_is_no_sweep_and_no_claim_holds() -> None:
    results = synthetic_sweep(logistic(0.25), values=(0.3, 0.5))
    part = Curve(FRACTION, results.records[:2])
    assert Verdict.HOLDS not in {verdicts(part)[f"sweep-f/{name}"] for name in ("transition", "half-way", "learned")}


def test_two_values_show_no_threshold() -> None:
    """A step of the largest size, and a paper's value that no data could exclude."""
    two = curve(synthetic_sweep(lambda f: 0.05 if f < 0.5 else 0.99, values=(0.1, 0.9)))
    found = verdicts(two)
    assert {found[f"sweep-f/{name}"] for name in ("transition", "half-way", "learned")} == {Verdict.SKIPPED}


@pytest.mark.parametrize("n", [6, 20])
def test_a_straight_line_is_no_threshold(n: int) -> None:
    values = np.linspace(0.06, 0.99, n).round(4).tolist()
    [result] = [
        result
        for result in verify_sweep(curve(synthetic_sweep(lambda f: (f - 0.06) / 0.93, values=values)))
        if result.claim.id == "sweep-f/transition"
    ]
    assert result.verdict is Verdict.FAILS
    failed = [finding.criterion.quantity for finding in result.findings if finding.verdict is Verdict.FAILS]
    assert failed == ["share of the sweep over which the curve takes its step"]


def test_an_interval_that_covers_nearly_all_says_nothing() -> None:
    values = (0.06, 0.08, 0.1, 0.9, 0.95, 0.99)
    found = verify_sweep(curve(synthetic_sweep(lambda f: 0.05 if f < 0.5 else 0.99, values=values)))
    by_name = {result.claim.id: result for result in found}
    assert by_name["sweep-f/half-way"].findings[0].verdict is Verdict.HOLDS, "the paper's value is in it"
    assert by_name["sweep-f/half-way"].verdict is Verdict.FAILS


def test_curve_of_another_field_is_refused() -> None:
    results = synthetic_sweep(logistic(0.25))
    manifest = dataclasses.replace(results.manifest, axes=results.manifest.axes[1:])
    with pytest.raises(InputError, match="expected one of f or of r"):
        curve(dataclasses.replace(results, manifest=manifest))
