"""Every property holds on a model that composes, and fails on a model in which what it is about is broken."""

from __future__ import annotations

import pytest
import torch

from aa_core.circuits.subject import Subject
from aa_core.controls import CONTROLS
from aa_core.generalisation.properties import PROPERTIES, Property, comparisons, judge_property
from aa_core.statistics import Verdict
from circuit_tests.meta.compiled_model import D, compiled_subject

properties = pytest.mark.parametrize("prop", PROPERTIES, ids=[prop.id for prop in PROPERTIES])


@pytest.fixture(scope="module")
def good() -> Subject:
    return compiled_subject(W_Q0=10 * D**0.5 * torch.eye(D))


@properties
def test_property_holds_on_a_model_that_composes(prop: Property, good: Subject) -> None:
    assert judge_property(good, prop).found.verdict is Verdict.HOLDS


@properties
def test_property_fails_on_a_broken_model(prop: Property, good: Subject) -> None:
    broken = CONTROLS[prop.broken_by].apply(good, 0)
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
