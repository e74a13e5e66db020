"""A layout: everything of a sequence but the values of its two operands.

The text is that of a problem with marks for what is left open: in `b=L, k=7, c=R, d=*, b+R=?` the variable `b` has
the left operand's value, `c` happens to have the right one's, and the value of `d` is open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

import numpy as np
from jaxtyping import Int

from aa_core.errors import InputError
from aa_core.task.config import TaskConfig
from aa_core.task.problems import PAD_SIGN, Problem, default_layout, parse_problem
from aa_core.task.sampling import Kind
from aa_core.task.sequences import Sequences


class Mark(StrEnum):
    """A value that differs between the sequences of a layout."""

    LEFT = "L"
    RIGHT = "R"
    OPEN = "*"


@dataclass(frozen=True)
class Layout:
    """Assignments, operand letters and PADs; with two operand values it is a sequence.

    Attributes:
        assignments: letter and value, in order. An operand's letter has the mark of its side; a distractor has a
            constant, the mark of an operand whose value it repeats, or `Mark.OPEN`: any value, drawn per sequence.
        left: letter on the left of `+`, None for a constant.
        right: letter on the right of `+`, None for a constant; not the left one.
        gaps: PADs before each assignment and, last, before `+`.
    """

    assignments: tuple[tuple[str, int | Mark], ...]
    left: str | None
    right: str | None
    gaps: tuple[int, ...]

    @property
    def kind(self) -> Kind:
        """Where the variables stand."""
        if self.left is None:
            return Kind.ZERO if self.right is None else Kind.RIGHT
        return Kind.LEFT if self.right is None else Kind.TWO

    @property
    def operands(self) -> tuple[str | None, str | None]:
        """The letters on the left and on the right."""
        return self.left, self.right

    @property
    def distractors(self) -> tuple[int, ...]:
        """Places among the assignments of those that no operand names."""
        return tuple(place for place, (name, _) in enumerate(self.assignments) if name not in self.operands)

    def check(self, task: TaskConfig) -> None:
        """Make sure that the layout is one of this task.

        Raises:
            InputError: see `Problem.check`; or both operands are the same letter, or an operand's letter is assigned
                something else than the value of its side.
        """
        if self.left is not None and self.left == self.right:
            raise InputError(f"layout {self.text(task)!r}: both operands are {self.left}, expected different letters")
        values = dict(self.assignments)
        for letter, mark in zip(self.operands, (Mark.LEFT, Mark.RIGHT), strict=True):
            if letter is not None and values.get(letter, mark) is not mark:
                raise InputError(f"layout {self.text(task)!r}: {letter} is {values[letter]}, expected {letter}={mark}")
        self.problem(0, 0).check(task)

    def problem(self, left: int, right: int, open_value: int = 0) -> Problem:
        """The sequence with two operand values; open values are all `open_value`."""
        values = {Mark.LEFT: left, Mark.RIGHT: right, Mark.OPEN: open_value}
        return Problem(
            tuple((name, values[value] if isinstance(value, Mark) else value) for name, value in self.assignments),
            left if self.left is None else self.left,
            right if self.right is None else self.right,
            self.gaps,
        )

    def sequences(self, task: TaskConfig, pairs: Int[np.ndarray, "n 2"], seed: int = 0) -> Sequences:
        """One sequence for each pair of operand values; open values are drawn, uniformly, from the seed.

        Raises:
            InputError: see `check`.
        """
        self.check(task)
        problem, n = self.problem(0, 0), len(pairs)
        tokens = np.tile(problem.tokens(task), (n, 1))
        rng = np.random.default_rng(np.random.Philox(key=np.array([seed, 3000], dtype=np.uint64)))
        starts = (pads + 2 * place for place, pads in enumerate(accumulate(self.gaps[:-1])))
        for start, (_, value) in zip(starts, self.assignments, strict=True):
            if value is Mark.OPEN:
                tokens[:, start + 1] = rng.integers(0, task.modulus, n)
            elif isinstance(value, Mark):
                tokens[:, start + 1] = pairs[:, 0 if value is Mark.LEFT else 1]
        for side, (letter, position) in enumerate(
            zip(self.operands, (task.left_position, task.right_position), strict=True)
        ):
            if letter is None:
                tokens[:, position] = pairs[:, side]
        variables = np.tile(problem.operand_variables(task), (n, 1))
        sources = np.tile(problem.sources(task), (n, 1))
        return Sequences(tokens, pairs.sum(1) % task.modulus, pairs, variables, sources)

    def text(self, task: TaskConfig) -> str:
        """The layout as `parse_layout` reads it; PADs are written where they are not the default ones."""
        parts = [f"{name}={value}" for name, value in self.assignments]
        parts.append(f"{self.left or Mark.LEFT}+{self.right or Mark.RIGHT}=?")
        if self.gaps != default_layout(task, len(self.assignments)):
            parts = [f"{PAD_SIGN} " * pads + part for pads, part in zip(self.gaps, parts, strict=True)]
        return ", ".join(parts)


def parse_layout(task: TaskConfig, text: str) -> Layout:
    """Read a layout such as `b=L, k=7, b+R=?`.

    Raises:
        InputError: the text is not of this form, or see `Layout.check`.
    """
    plain = _filled(task, text, None)
    marked = {mark: _filled(task, text, mark) for mark in Mark}
    assignments: list[tuple[str, int | Mark]] = []
    for place, (name, value) in enumerate(plain.assignments):
        moved = [mark for mark, other in marked.items() if other.assignments[place][1] != value]
        assignments.append((name, moved[0] if moved else value))
    for mark, side in ((Mark.LEFT, "left"), (Mark.RIGHT, "right")):
        operand = getattr(plain, side)
        if not isinstance(operand, str) and getattr(marked[mark], side) == operand:
            raise InputError(f"layout {text!r}: the {side} operand is no letter, expected {mark} for all its values")
    left, right = (operand if isinstance(operand, str) else None for operand in (plain.left, plain.right))
    layout = Layout(tuple(assignments), left, right, plain.layout(task))
    layout.check(task)
    return layout


def _filled(task: TaskConfig, text: str, one: Mark | None) -> Problem:
    """The problem with 1 for a mark, 0 for the others."""
    return parse_problem(task, re.sub(r"(?<![\w*])[LR*](?![\w*])", lambda found: str(int(found[0] == one)), text))
