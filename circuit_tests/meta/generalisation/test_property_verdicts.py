"""Every property holds on a model that composes, and fails on a model in which what it is about is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from aa_core.circuits.subject import Subject
from aa_core.cli.main import main
from aa_core.controls import CONTROLS
from aa_core.generalisation.properties import PROPERTIES, Property, comparisons, judge_property
from aa_core.generalisation.properties_page import properties_page
from aa_core.generalisation.transformations import TRANSFORMATIONS, Transformation
from aa_core.statistics import Verdict
from aa_core.task.config import TaskConfig
from aa_core.task.problems import parse_problem
from aa_core.task.split import Split, SplitConfig

properties = pytest.mark.parametrize("prop", PROPERTIES, ids=[prop.id for prop in PROPERTIES])


def test_page_is_current(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs/properties.md"
    assert page.read_text() == properties_page(), "run: aa search --properties docs/properties.md"
    assert main(["search", "--properties", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text() == properties_page()


def test_page_says_all_of_each_property() -> None:
    page = properties_page()
    for prop in PROPERTIES:
        section = page.split(f"## {prop.transformation.name}\n")[1].split("\n## ")[0]
        assert prop.transformation.statement in section
        assert prop.measured in section
        [line] = [line for line in section.splitlines() if line.startswith(f"- `{prop.id}`")]
        assert f"{prop.quantity} >= {prop.bound}" in line
        assert f"{prop.share};" in line
        assert f"broken by `{prop.broken_by}`" in line


@pytest.mark.parametrize("transformation", TRANSFORMATIONS.values(), ids=TRANSFORMATIONS.keys())
def test_examples_are_sequences_with_the_same_answer(transformation: Transformation) -> None:
    before, after = (parse_problem(TaskConfig(), text) for text in transformation.example)
    assert before != after
    assert before.answer(TaskConfig()) == after.answer(TaskConfig())
    kept = Split(TaskConfig(), SplitConfig())
    seen = [
        variable in kept.restricted_variables(side)
        for problem in (before, after)
        for side, variable in enumerate(problem.operand_variables(TaskConfig()))
    ]
    assert any(seen[:2]) is False
    assert any(seen[2:]) is transformation.restricted


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
