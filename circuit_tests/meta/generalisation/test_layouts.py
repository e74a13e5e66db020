"""Layouts: text, sequences, and the law by which they are drawn."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from aa_core.errors import InputError
from aa_core.generalisation.drawing import Region, random_layouts
from aa_core.generalisation.layout import Layout, Mark, parse_layout
from aa_core.generalisation.strategies import layouts
from aa_core.task.config import TaskConfig
from aa_core.task.problems import problem_from_tokens
from aa_core.task.sampling import KINDS, Kind
from aa_core.task.split import Split, SplitConfig

PAPER = TaskConfig()
SPLIT = Split(PAPER, SplitConfig())
TASKS = [PAPER, TaskConfig(7, 4, 2, 8), TaskConfig(2, 2, 2, 12), TaskConfig(13, 6, 5, 23)]
tasks_and_layouts = st.sampled_from(TASKS).flatmap(
    lambda task: st.tuples(st.just(task), st.booleans().flatmap(lambda open_: layouts(task, open_values=open_)))
)


@settings(max_examples=50)
@given(tasks_and_layouts)
def test_text_gives_the_same_layout_back(case: tuple[TaskConfig, Layout]) -> None:
    task, layout = case
    assert parse_layout(task, layout.text(task)) == layout, layout.text(task)


@settings(max_examples=50)
@given(tasks_and_layouts, st.data())
def test_sequences_are_the_problems_of_the_layout(case: tuple[TaskConfig, Layout], data: st.DataObject) -> None:
    task, layout = case
    values = st.integers(0, task.modulus - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(values, values), min_size=1, max_size=4)))
    sequences = layout.sequences(task, pairs)
    for row, (left, right) in enumerate(pairs.tolist()):
        problem = problem_from_tokens(task, sequences.tokens[row])
        assert problem.operand_values(task) == (left, right)
        assert problem.operand_variables(task) == tuple(sequences.variables[row])
        assert problem.sources(task) == tuple(sequences.sources[row])
        assert problem.answer(task) == sequences.answers[row] == (left + right) % task.modulus
        assert problem.layout(task) == layout.gaps
        if Mark.OPEN not in dict(layout.assignments).values():
            assert problem.text(task) == layout.problem(left, right).text(task)


def test_open_values_are_drawn_for_each_sequence() -> None:
    layout = parse_layout(PAPER, "b=L, c=*, b+R=?")
    pairs = np.zeros((200, 2), dtype=np.int64)
    values = layout.sequences(PAPER, pairs, seed=1).tokens[:, layout.gaps[0] + 2 + layout.gaps[1] + 1]
    assert len(set(values.tolist())) > 40, "open values are hardly drawn at all"
    again = layout.sequences(PAPER, pairs, seed=1).tokens
    assert (again == layout.sequences(PAPER, pairs, seed=1).tokens).all()
    assert (again != layout.sequences(PAPER, pairs, seed=2).tokens).any()


def test_marks() -> None:
    layout = parse_layout(PAPER, " _ b=L, k=7, c=R, _ d=*, e = L, b + R")
    assignments = (("b", Mark.LEFT), ("k", 7), ("c", Mark.RIGHT), ("d", Mark.OPEN), ("e", Mark.LEFT))
    assert layout == Layout(assignments, "b", None, (1, 0, 0, 1, 0, 0))
    assert layout.text(PAPER) == "_ b=L, k=7, c=R, _ d=*, e=L, b+R=?"


BAD = {
    "no mark for a constant operand": ("b=L, b+14=?", "the right operand is no letter, expected R"),
    "marks exchanged": ("b=1, L+b=?", "b is 1, expected b=R"),
    "the other side's mark": ("b=L, L+b=?", "b is L, expected b=R"),
    "one letter twice": ("b=L, b+b=?", "both operands are b"),
    "not a problem": ("b=L", "cannot read the sum"),
    "a mark glued to a digit": ("b=L, c=1L, b+R=?", "cannot read the constant '1L'"),
    "unknown mark": ("b=X, b+R=?", "cannot read the constant 'X'"),
    "PADs missing": ("_ b=L, b+R=?", "1 PADs"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_bad_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_layout(PAPER, text)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_random_layouts_follow_the_law(kind: Kind) -> None:
    drawn = list(islice(random_layouts(Region(SPLIT, (kind,), restricted=0), 3), 1200))

    def check(values: list[int], expected: list[float], what: str) -> None:
        counts = np.bincount(values, minlength=len(expected))
        assert len(counts) == len(expected), what
        assert stats.chisquare(counts, len(values) * np.array(expected)).pvalue > 1e-4, f"{what}: {counts}"

    assert {layout.kind for layout in drawn} == {kind}
    n_assignments = [len(layout.assignments) for layout in drawn]
    if kind is Kind.TWO:  # a draw of one assignment becomes two
        check([n - 2 for n in n_assignments], [2 / 6, *[1 / 6] * 4], "number of assignments")
    else:
        check([n - 1 for n in n_assignments], [1 / 6] * 6, "number of assignments")
    first_gaps = [layout.gaps[0] for layout in drawn if len(layout.assignments) == 3]
    check(first_gaps, list(stats.binom.pmf(range(7), 6, 1 / 4)), "PADs before the first of three assignments")
    for side in (0, 1):
        names = [name for layout in drawn if (name := layout.operands[side]) is not None]
        if names:
            letters = PAPER.variables[:10] if side == 0 else PAPER.variables[2:]
            expected = np.array([10 - (kind is Kind.TWO and "c" <= name <= "j") for name in letters], dtype=float)
            check([letters.index(name) for name in names], list(expected / expected.sum()), f"letters on side {side}")
    values = [value for layout in drawn for place in layout.distractors for value in [layout.assignments[place][1]]]
    check([int(value) for value in values], [1 / 59] * 59, "distractor values")
    operand_places = [
        [name for name, _ in layout.assignments].index(str(layout.operands[1 if kind is Kind.RIGHT else 0]))
        for layout in drawn
        if len(layout.assignments) == 4 and kind is not Kind.ZERO
    ]
    if operand_places:
        check(operand_places, [1 / 4] * 4, "place of the operand's assignment")
