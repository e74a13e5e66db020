"""Hypothesis strategies: sequences and layouts of the task. Every draw has a label.

from hypothesis import given
from aa_core.generalisation.strategies import problems
from aa_core.task.config import TaskConfig

@given(problems(TaskConfig(), left="k"))
def test_my_model(problem):
    assert problem.answer(TaskConfig()) == sum(problem.operand_values(TaskConfig())) % 59
"""

from __future__ import annotations

from aa_core.errors import InputError
from aa_core.generalisation.drawing import Choose, Region, draw_layout, draw_problem
from aa_core.generalisation.layout import Layout
from aa_core.task.config import TaskConfig
from aa_core.task.problems import Problem
from aa_core.task.sampling import KINDS, Kind
from aa_core.task.split import Split, SplitConfig

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise InputError("hypothesis is not installed: pip install 'assign-and-add[test]'") from error


def problems(
    task: TaskConfig,
    *,
    split: Split | None = None,
    kinds: tuple[Kind, ...] = KINDS,
    restricted: int | None = None,
    held_out: bool | None = None,
    left: str | None = None,
    right: str | None = None,
) -> st.SearchStrategy[Problem]:
    """Any sequence that the paper's law can draw: at least one assignment, two different letters in 2-var.

    Problems are in normal form: each is what `parse_problem` makes of its text.

    The smallest has the fewest assignments, the first letters, the smallest values, operands first, and PADs spread
    evenly.

    Args:
        task: sizes.
        split: what training sees; needed for the next two.
        kinds: kinds of sequences.
        restricted: how many operand letters stand where training never puts them; None for any number.
        held_out: whether training never shows the pair of operand values; None for all pairs.
        left: the letter on the left of `+`; None for any.
        right: the letter on the right of `+`; None for any.

    Raises:
        InputError: there is no such sequence, or the split is missing or of another task.
    """
    return problems_in(_region(task, split, kinds, restricted, held_out, left, right))


def layouts(
    task: TaskConfig,
    *,
    split: Split | None = None,
    kinds: tuple[Kind, ...] = KINDS,
    restricted: int | None = None,
    left: str | None = None,
    right: str | None = None,
    open_values: bool = False,
) -> st.SearchStrategy[Layout]:
    """Everything of a sequence but the two operand values.

    Args:
        task: see `problems`.
        split: see `problems`.
        kinds: see `problems`.
        restricted: see `problems`.
        left: see `problems`.
        right: see `problems`.
        open_values: leave out the distractors' values, too.

    Raises:
        InputError: see `problems`.
    """
    return layouts_in(_region(task, split, kinds, restricted, None, left, right), open_values=open_values)


def _region(
    task: TaskConfig,
    split: Split | None,
    kinds: tuple[Kind, ...],
    restricted: int | None,
    held_out: bool | None,
    left: str | None,
    right: str | None,
) -> Region:
    if split is None:
        if restricted is not None or held_out is not None:
            raise InputError("restricted and held_out depend on what training sees: give the split")
        split = Split(task, SplitConfig(train_fraction=1, never_left="", never_right=""))
    if split.task != task:
        raise InputError("the split is of another task: give its own")
    return Region(split, kinds, restricted, held_out, left, right)


def _drawn_by(draw: st.DrawFn) -> Choose:
    return lambda label, options: draw(st.sampled_from(options), label)


@st.composite
def problems_in(draw: st.DrawFn, region: Region) -> Problem:
    """`problems` of a region."""
    return draw_problem(region, _drawn_by(draw))


@st.composite
def layouts_in(draw: st.DrawFn, region: Region, *, open_values: bool = False) -> Layout:
    """`layouts` of a region."""
    return draw_layout(region, _drawn_by(draw), open_values=open_values)
