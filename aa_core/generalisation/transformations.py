"""Exact transformations: changes of a sequence that leave the answer what it was, or turn it into another sum's.

Each takes a layout to a layout and, where the operand values change, pairs to pairs with the same sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from aa_core.generalisation.drawing import Choose, draw_distractor, draw_gaps, draw_order
from aa_core.generalisation.layout import Layout, Mark
from aa_core.task.config import TaskConfig
from aa_core.task.sampling import operand_letters
from aa_core.task.sequences import NO_VARIABLE
from aa_core.task.split import Split

Pairs = Int[np.ndarray, "n 2"]
OTHER_SIDE = {Mark.LEFT: Mark.RIGHT, Mark.RIGHT: Mark.LEFT}


def _all_pairs(modulus: int) -> tuple[Pairs, Pairs]:
    pairs = np.argwhere(np.ones((modulus, modulus), dtype=bool))
    return pairs, pairs


def _exchanged(modulus: int) -> tuple[Pairs, Pairs]:
    pairs, _ = _all_pairs(modulus)
    return pairs, pairs[:, ::-1]


def _made_equal(modulus: int) -> tuple[Pairs, Pairs]:
    """(n - d, n + d) and (n, n) for all n and d."""
    n, d = _all_pairs(modulus)[0].T
    return np.stack([n - d, n + d], axis=1) % modulus, np.stack([n, n], axis=1)


@dataclass(frozen=True)
class Transformation:
    """A change that an answer does not depend on.

    Attributes:
        name: as tests and reports call it.
        statement: what must hold, in one sentence.
        example: a sequence before and after the change.
        change: from the split, a layout and choices to the new layout; None where there is nothing to change.
        pairs: from the modulus to operand values before and after, row by row with the same sum.
        restricted: whether the change moves a letter to a side where training never puts it; else none stands there.
    """

    name: str
    statement: str
    example: tuple[str, str]
    change: Callable[[Split, Layout, Choose], Layout | None]
    pairs: Callable[[int], tuple[Pairs, Pairs]] = _all_pairs
    restricted: bool = False

    def apply(self, split: Split, layout: Layout, choose: Choose) -> Layout | None:
        """The changed layout; None where there is nothing to change, or letters would stand on the wrong side."""
        changed = self.change(split, layout, choose)
        if changed is None or (changed == layout and self.pairs is _all_pairs):
            return None
        return changed if bool(n_restricted(split, changed)) == self.restricted else None


def n_restricted(split: Split, layout: Layout) -> int:
    """How many operand letters stand where training never puts them."""
    return sum(
        letter is not None and split.task.variable_index(letter) in split.restricted_variables(side)
        for side, letter in enumerate(layout.operands)
    )


def operands_exchanged(split: Split, layout: Layout, choose: Choose) -> Layout:
    """What was added on the right is added on the left: b + 14 for 14 + b."""
    assignments = tuple(
        (name, OTHER_SIDE.get(value, value) if isinstance(value, Mark) else value) for name, value in layout.assignments
    )
    return replace(layout, assignments=assignments, left=layout.right, right=layout.left)


def letters_renamed(split: Split, layout: Layout, choose: Choose) -> Layout:
    """Other letters for all that is assigned; operands get letters that training puts on their side."""
    task = split.task
    names = {index: name for index, name in enumerate(task.variables)} | {NO_VARIABLE: None}
    options = [(names[int(left)], names[int(right)]) for left, right in operand_letters(split, layout.kind, 0)]
    left, right = choose("variables", options)
    renamed = {old: new for old, new in ((layout.left, left), (layout.right, right)) if old is not None}
    for place in layout.distractors:
        free = [name for name in task.variables if name not in renamed.values()]
        renamed[layout.assignments[place][0]] = choose("distractor", free)
    assignments = tuple((str(renamed[name]), value) for name, value in layout.assignments)
    return replace(layout, assignments=assignments, left=left, right=right)


def padding_moved(split: Split, layout: Layout, choose: Choose) -> Layout:
    """The PADs spread anew."""
    return replace(layout, gaps=draw_gaps(split.task, len(layout.assignments), choose))


def assignments_reordered(split: Split, layout: Layout, choose: Choose) -> Layout:
    """The assignments in another order."""
    return replace(layout, assignments=draw_order(layout.assignments, choose))


def distractor_values_changed(split: Split, layout: Layout, choose: Choose) -> Layout | None:
    """Other constants for the distractors."""
    assignments = list(layout.assignments)
    for place in layout.distractors:
        assignments[place] = (assignments[place][0], choose("distractor value", range(split.task.modulus)))
    return replace(layout, assignments=tuple(assignments))


def n_distractors_changed(split: Split, layout: Layout, choose: Choose) -> Layout | None:
    """Distractors added or removed, the PADs spread anew."""
    task, places = split.task, list(layout.distractors)
    n_operands = len(layout.assignments) - len(places)
    numbers = [n for n in range(max(1, n_operands), task.max_assignments + 1) if n != len(layout.assignments)]
    if not numbers:
        return None
    return with_n_assignments(task, layout, choose("number of assignments", numbers), choose)


def with_n_assignments(task: TaskConfig, layout: Layout, n: int, choose: Choose) -> Layout:
    """Distractors added or removed until there are `n` assignments, the PADs spread anew."""
    assignments = list(layout.assignments)
    while len(assignments) > n:
        places = [place for place, (name, _) in enumerate(assignments) if name not in layout.operands]
        del assignments[choose("removed", places)]
    while len(assignments) < n:
        distractor = draw_distractor(task, choose, [name for name, _ in assignments])
        assignments.insert(choose("order", range(len(assignments) + 1)), distractor)
    return replace(layout, assignments=tuple(assignments), gaps=draw_gaps(task, n, choose))


def distractor_repeats_operand(split: Split, layout: Layout, choose: Choose) -> Layout | None:
    """A distractor has the value of an operand."""
    if not layout.distractors:
        return None
    assignments = list(layout.assignments)
    place = choose("distractor", layout.distractors)
    assignments[place] = (assignments[place][0], choose("operand", (Mark.LEFT, Mark.RIGHT)))
    return replace(layout, assignments=tuple(assignments))


def unchanged(split: Split, layout: Layout, choose: Choose) -> Layout:
    """The same layout, for changes of the values alone."""
    return layout


TRANSFORMATIONS: Mapping[str, Transformation] = {
    transformation.name: transformation
    for transformation in (
        Transformation(
            "position-never-seen",
            "A letter is understood on the side where training never puts it: b+14 after 14+b.",
            ("b=3, b+14=?", "b=3, 14+b=?"),
            operands_exchanged,
            _exchanged,
            restricted=True,
        ),
        Transformation(
            "operands-exchanged", "Addition commutes.", ("c=3, c+14=?", "c=3, 14+c=?"), operands_exchanged, _exchanged
        ),
        Transformation("letters-renamed", "Any letters can be used.", ("c=3, c+14=?", "e=3, e+14=?"), letters_renamed),
        Transformation(
            "padding-moved",
            "PADs can stand anywhere.",
            ("c=3, c+14=?", "_ _ c=3, _ _ _ _ _ _ _ _ c+14=?"),
            padding_moved,
        ),
        Transformation(
            "assignments-reordered",
            "Assignments can stand in any order.",
            ("c=3, d=7, c+14=?", "d=7, c=3, c+14=?"),
            assignments_reordered,
        ),
        Transformation(
            "distractor-values-changed",
            "Values that no operand names do not matter.",
            ("c=3, d=7, c+14=?", "c=3, d=8, c+14=?"),
            distractor_values_changed,
        ),
        Transformation(
            "number-of-distractors",
            "Any number of assignments that no operand names can be there.",
            ("c=3, d=7, c+14=?", "c=3, e=1, d=7, c+14=?"),
            n_distractors_changed,
        ),
        Transformation(
            "operand-values-equal",
            "n + n is added as any other sum is.",
            ("c=3, c+13=?", "c=8, c+8=?"),
            unchanged,
            _made_equal,
        ),
        Transformation(
            "distractor-repeats-operand",
            "A distractor can have an operand's value.",
            ("c=3, d=7, c+14=?", "c=3, d=3, c+14=?"),
            distractor_repeats_operand,
        ),
    )
}
