"""Strategies: the whole space is reached, filters filter, and cases shrink to the smallest."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from aa_core.cli.main import main
from aa_core.errors import InputError
from aa_core.generalisation import strategies
from aa_core.generalisation.drawing import Region, draw_layout, draw_problem
from aa_core.generalisation.layout import Mark
from aa_core.generalisation.strategies import layouts, problems
from aa_core.task.config import TaskConfig
from aa_core.task.problems import Problem, parse_problem, problem_from_tokens
from aa_core.task.sampling import POOLS, Kind
from aa_core.task.split import Split, SplitConfig

PAPER = TaskConfig()
SPLIT = Split(PAPER, SplitConfig())
SMALL = TaskConfig(7, 4, 2, 8)
TASKS = [PAPER, SMALL, TaskConfig(2, 2, 2, 12)]
WITHOUT_EXPLANATION = (Phase.generate, Phase.shrink)


def roles(problem: Problem) -> set[tuple[str, object]]:
    """What a problem shows of the space."""
    names = [name for name, _ in problem.assignments]
    n, gaps = len(names), problem.layout(PAPER)
    operands = (problem.left, problem.right)
    return {
        ("assignments", n),
        ("kind", tuple(isinstance(operand, str) for operand in operands)),
        *(("left", operand) for operand in operands[:1] if isinstance(operand, str)),
        *(("right", operand) for operand in operands[1:] if isinstance(operand, str)),
        *(("distractor", name) for name in names if name not in operands),
        *(("gap", (n, gap)) for gap, pads in enumerate(gaps) if pads),
    }


def test_every_part_of_the_space_is_reached() -> None:
    reached: set[tuple[str, object]] = set()

    @settings(max_examples=900)
    @given(problems(PAPER))
    def collect(problem: Problem) -> None:
        problem.check(PAPER)
        reached.update(roles(problem))

    collect()
    expected = {
        *(("assignments", n) for n in range(1, 7)),
        *(("kind", (left, right)) for left in (False, True) for right in (False, True)),
        *((role, name) for role in ("left", "right", "distractor") for name in PAPER.variables),
        *(("gap", (n, gap)) for n in range(1, 6) for gap in range(n + 1)),
    }
    assert reached == expected, f"never drawn: {sorted(map(str, expected - reached))}"


@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str) -> None:
    pool = POOLS[name]

    @settings(max_examples=20)
    @given(problems(PAPER, split=SPLIT, kinds=pool.kinds, restricted=pool.restricted, held_out=pool.held_out))
    def check(problem: Problem) -> None:
        by_variables = {(0, 0): Kind.ZERO, (1, 0): Kind.LEFT, (0, 1): Kind.RIGHT, (1, 1): Kind.TWO}
        kind = by_variables[isinstance(problem.left, str), isinstance(problem.right, str)]
        assert kind in pool.kinds
        assert (problem.left in tuple("kl")) + (problem.right in tuple("ab")) == pool.restricted
        assert SPLIT.seen[problem.operand_values(PAPER)] != pool.held_out

    check()


@settings(max_examples=50)
@given(problems(PAPER, left="k", kinds=(Kind.LEFT, Kind.TWO)))
def test_letters_can_be_asked_for(problem: Problem) -> None:
    assert problem.left == "k"


@settings(max_examples=60)
@given(st.sampled_from(TASKS).flatmap(lambda task: st.tuples(st.just(task), problems(task))))
def test_problems_are_what_is_parsed_from_their_text(case: tuple[TaskConfig, Problem]) -> None:
    task, problem = case
    assert parse_problem(task, problem.text(task)) == problem
    assert parse_problem(task, problem.text(task, show_pads=True)) == problem
    assert problem_from_tokens(task, problem.tokens(task)) == problem


def test_example_of_the_docstring_runs() -> None:
    example: dict[str, Any] = {}
    _, _, code = str(strategies.__doc__).partition("\n\n")
    exec(code, example)
    example["test_my_model"]()


@given(layouts(SMALL, open_values=True))
def test_values_of_distractors_can_be_left_open(layout: Any) -> None:
    assert {layout.assignments[place][1] for place in layout.distractors} <= {Mark.OPEN}


SMALLEST: dict[str, tuple[tuple[Kind, ...], Callable[[Problem], bool], str]] = {
    "0-var": ((Kind.ZERO,), lambda problem: True, "a=0, 0+0=?"),
    "1L": ((Kind.LEFT,), lambda problem: True, "a=0, a+0=?"),
    "1R": ((Kind.RIGHT,), lambda problem: True, "a=0, 0+a=?"),
    "2-var": ((Kind.TWO,), lambda problem: True, "a=0, b=0, a+b=?"),
    "letter": ((Kind.RIGHT,), lambda problem: str(problem.right) > "c", "d=0, 0+d=?"),
    "values": ((Kind.LEFT,), lambda problem: problem.answer(PAPER) > 40, "a=0, a+41=?"),
    "distractors": ((Kind.LEFT,), lambda problem: len(problem.assignments) > 2, "a=0, b=0, c=0, a+0=?"),
    "gap": ((Kind.LEFT,), lambda problem: problem.layout(PAPER)[0] > 5, "_ _ _ _ _ _ a=0, _ _ _ _ a+0=?"),
}


@pytest.mark.parametrize(("kinds", "condition", "text"), SMALLEST.values(), ids=SMALLEST.keys())
def test_cases_shrink_to_the_smallest(kinds: tuple[Kind, ...], condition: Callable[[Problem], bool], text: str) -> None:
    found = find(
        problems(PAPER, kinds=kinds), condition, settings=settings(max_examples=1000, phases=WITHOUT_EXPLANATION)
    )
    assert found.text(PAPER) == text


def test_every_choice_has_a_label() -> None:
    labels: list[str] = []

    def first(label: str, options: Any) -> Any:
        labels.append(label)
        return options[-1]

    draw_problem(Region(SPLIT), first)
    assert set(labels) == {
        "kind",
        "variables",
        "number of assignments",
        "distractor",
        "distractor value",
        "order",
        "gap",
        "values",
    }
    labels.clear()
    draw_layout(Region(SPLIT), first, open_values=True)
    assert "distractor value" not in labels
    assert "values" not in labels


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"held_out": True}, "give the split"),
        ({"restricted": 1}, "give the split"),
        ({"split": Split(SMALL, SplitConfig(never_left="", never_right=""))}, "another task"),
        (
            {"split": SPLIT, "restricted": 2, "kinds": (Kind.LEFT,)},
            "no 1L sequence of the split has 2 of its letters where training never puts them",
        ),
        ({"left": "z"}, "sequence of the split has such letters"),
        ({"left": "a", "kinds": (Kind.RIGHT,)}, "no 1R sequence"),
        ({"split": Split(PAPER, SplitConfig(train_fraction=1)), "held_out": True}, "holds out no pair"),
    ],
)
def test_empty_strategies_are_refused(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        problems(PAPER, **arguments)


def test_without_hypothesis_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, strategies.__name__)
    try:
        code = main(["search"])
    finally:
        monkeypatch.undo()
        importlib.import_module(strategies.__name__)
    assert code == 2
    assert capsys.readouterr().err == ("aa: error: hypothesis is not installed: pip install 'assign-and-add[test]'\n")
