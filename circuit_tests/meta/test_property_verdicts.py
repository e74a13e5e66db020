"""Every property holds on a model that composes, and fails on a model in which what it is about is broken."""

from __future__ import annotations

import pytest
import torch

from aa_core.circuits.subject import Subject
from aa_core.controls import CONTROLS
from aa_core.generalisation.properties import PROPERTIES, Property, comparisons, judge_property
from aa_core.statistics import Verdict
from circuit_tests.meta.compiled_model import D, compiled_subject

BROKEN_BY = {
    "position-never-seen-accuracy": "restricted-letters-unseen",
    "position-never-seen-agreement": "equals-ignores-right",
    "operands-exchanged-accuracy": "equals-ignores-left",
    "operands-exchanged-agreement": "equals-ignores-left",
    "letters-renamed-accuracy": "one-letter-bound",
    "letters-renamed-agreement": "letters-merged",
    "padding-moved-accuracy": "positions-permuted",
    "padding-moved-agreement": "random",
    "assignments-reordered-accuracy": "uniform-attention-0",
    "assignments-reordered-agreement": "random",
    "distractor-values-changed-accuracy": "ov0-without-variables",
    "distractor-values-changed-agreement": "qk1-rotated",
    "number-of-distractors-accuracy": "uniform-attention-0",
    "number-of-distractors-agreement": "qk1-rows-shuffled",
    "operand-values-equal-accuracy": "win-permuted",
    "operand-values-equal-agreement": "positions-permuted",
    "distractor-repeats-operand-accuracy": "variables-equal",
    "distractor-repeats-operand-agreement": "qk1-rows-shuffled",
}
properties = pytest.mark.parametrize("prop", PROPERTIES, ids=[prop.id for prop in PROPERTIES])


@pytest.fixture(scope="module")
def good() -> Subject:
    return compiled_subject(W_Q0=10 * D**0.5 * torch.eye(D))


def test_each_property_has_a_model_that_breaks_it() -> None:
    assert set(BROKEN_BY) == {prop.id for prop in PROPERTIES}


@properties
def test_property_holds_on_a_model_that_composes(prop: Property, good: Subject) -> None:
    assert judge_property(good, prop).found.verdict is Verdict.HOLDS


@properties
def test_property_fails_on_a_broken_model(prop: Property, good: Subject) -> None:
    broken = CONTROLS[BROKEN_BY[prop.id]].apply(good, 0)
    judged = judge_property(broken, prop)
    assert judged.found.verdict is Verdict.FAILS, judged.text(broken)
    text = judged.text(broken)
    assert f"fails: {prop.transformation.statement} ({prop.id})" in text
    assert judged.worst.after.text(broken.task) in text


def test_worst_layout_is_the_worst(good: Subject) -> None:
    [prop] = [prop for prop in PROPERTIES if prop.id == "assignments-reordered-accuracy"]
    broken = CONTROLS["uniform-attention-0"].apply(good, 0)
    judged = judge_property(broken, prop)
    cases = comparisons(broken, prop.transformation)
    accuracies = [next(cases).accuracy for _ in range(judged.found.measurement.n or 0)]
    assert judged.worst.accuracy == min(accuracies) < max(accuracies)
    reached = sum(accuracy >= prop.bound for accuracy in accuracies)
    assert judged.found.measurement.count == reached
