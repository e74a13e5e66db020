"""How a layout or a problem is drawn, choice by choice, from any source of choices.

The same choices made by Hypothesis shrink to a smallest case; made by a random generator they give independent layouts.
Their law is that of training but for the kinds and the operand letters, all of which are equally frequent: a uniform
number of assignments, distinct distractor letters with uniform values, a uniform order, and a uniform gap for each PAD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from aa_core.errors import InputError
from aa_core.generalisation.layout import Layout, Mark
from aa_core.task.config import TaskConfig
from aa_core.task.problems import Problem, default_layout
from aa_core.task.sampling import KINDS, Kind, operand_letters
from aa_core.task.sequences import NO_VARIABLE
from aa_core.task.split import Split

Operands = tuple[str | None, str | None]
"""The letters on the left and on the right, None for a constant."""

Choose = Callable[[str, Sequence[Any]], Any]
"""From what is chosen, in a word or two, and the options, the simplest first, to one of them."""


@dataclass(frozen=True)
class Region:
    """A part of all sequences of a task.

    Attributes:
        split: the task, its training pairs and its restricted letters.
        kinds: kinds of sequences.
        restricted: how many operand letters stand where training never puts them; None for any number.
        held_out: whether training never shows the pair of operand values; None for all pairs.
        left: the letter on the left of `+`; None for any.
        right: the letter on the right of `+`; None for any.

    Raises:
        InputError: the region is empty.
    """

    split: Split
    kinds: tuple[Kind, ...] = KINDS
    restricted: int | None = None
    held_out: bool | None = None
    left: str | None = None
    right: str | None = None

    def __post_init__(self) -> None:
        if not self.operands:
            wanted = (
                f"{self.restricted} of its letters where training never puts them"
                if self.restricted
                else "such letters"
            )
            raise InputError(f"no {', '.join(self.kinds)} sequence of the split has {wanted}: ask for others")
        if not self.mask.any():
            raise InputError("the split holds out no pair of values: ask for all pairs, or for those of training")

    @property
    def task(self) -> TaskConfig:
        """Sizes of the task."""
        return self.split.task

    @cached_property
    def operands(self) -> dict[Kind, list[Operands]]:
        """Operand letters by kind, for the kinds that have any."""
        names = {index: name for index, name in enumerate(self.task.variables)} | {NO_VARIABLE: None}
        numbers = (0, 1, 2) if self.restricted is None else (self.restricted,)
        found = {
            kind: [
                (names[left], names[right])
                for left, right in sorted(
                    (int(left), int(right))
                    for number in numbers
                    for left, right in operand_letters(self.split, kind, number)
                )
                if self.left in (None, names[left]) and self.right in (None, names[right])
            ]
            for kind in self.kinds
        }
        return {kind: letters for kind, letters in found.items() if letters}

    @cached_property
    def mask(self) -> Bool[np.ndarray, "modulus modulus"]:
        """The pairs of operand values."""
        if self.held_out is None:
            return np.ones_like(self.split.seen)
        return self.split.seen != self.held_out

    @cached_property
    def pairs(self) -> Int[np.ndarray, "pairs 2"]:
        """The pairs of operand values, in row-major order."""
        return np.argwhere(self.mask)


def draw_layout(region: Region, choose: Choose, *, open_values: bool = False) -> Layout:
    """A layout of a region.

    Args:
        region: which layouts.
        choose: makes the choices.
        open_values: leave the distractors' values open.
    """
    task = region.task
    kind = choose("kind", list(region.operands))
    left, right = choose("variables", region.operands[kind])
    waiting: list[tuple[str, int | Mark]] = [
        (letter, mark) for letter, mark in ((left, Mark.LEFT), (right, Mark.RIGHT)) if letter is not None
    ]
    n_distractors = max(choose("number of assignments", range(1, task.max_assignments + 1)) - len(waiting), 0)
    for _ in range(n_distractors):
        waiting.append(draw_distractor(task, choose, [name for name, _ in waiting], open_values=open_values))
    return Layout(draw_order(waiting, choose), left, right, draw_gaps(task, len(waiting), choose))


def draw_problem(region: Region, choose: Choose) -> Problem:
    """A problem of a region, in normal form."""
    layout = draw_layout(region, choose)
    left, right = region.pairs[choose("values", range(len(region.pairs)))]
    return layout.problem(int(left), int(right)).normal(region.task)


def draw_distractor(
    task: TaskConfig, choose: Choose, taken: Sequence[str], *, open_values: bool = False
) -> tuple[str, int | Mark]:
    """A letter that is not taken, and its value."""
    letter = choose("distractor", [name for name in task.variables if name not in taken])
    return letter, Mark.OPEN if open_values else choose("distractor value", range(task.modulus))


def draw_order(assignments: Sequence[tuple[str, int | Mark]], choose: Choose) -> tuple[tuple[str, int | Mark], ...]:
    """The assignments in some order; the simplest is the given one."""
    waiting, ordered = list(assignments), []
    while waiting:
        ordered.append(waiting.pop(choose("order", range(len(waiting)))))
    return tuple(ordered)


def draw_gaps(task: TaskConfig, n_assignments: int, choose: Choose) -> tuple[int, ...]:
    """A gap for each PAD; the simplest layout is the default one.

    Places that assignments take are drawn for as well, in vain: to Hypothesis the shortest draw is the smallest case,
    and that must be the one with the fewest assignments, not the one with the fewest PADs.
    """
    default = [gap for gap, pads in enumerate(default_layout(task, n_assignments)) for _ in range(pads)]
    gaps = [0] * (n_assignments + 1)
    for place in range(task.prefix_length):
        first = default[place] if place < len(default) else 0
        gap = choose("gap", sorted(range(n_assignments + 1), key=lambda gap, first=first: (gap != first, gap)))
        gaps[gap] += place < len(default)
    return tuple(gaps)


def random_choices(seed: int, stream: int) -> Choose:
    """Uniform choices, from a seed and the number of what is drawn from it."""
    rng = np.random.default_rng(np.random.Philox(key=np.array([seed, stream], dtype=np.uint64)))
    return lambda label, options: options[int(rng.integers(len(options)))]


def random_layouts(region: Region, seed: int) -> Iterator[Layout]:
    """Independent layouts of a region without end; kinds are equally frequent."""
    choose = random_choices(seed, 4000)
    while True:
        yield draw_layout(region, choose)
