"""Small changes of a layout, for a search that goes step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from aa_core.generalisation.drawing import Choose, Region
from aa_core.generalisation.layout import Layout, Mark
from aa_core.generalisation.transformations import distractor_repeats_operand, with_n_assignments


def neighbour(region: Region, layout: Layout, choose: Choose) -> Layout | None:
    """The layout after one small change; None where the change is not possible."""
    moved = choose("move", MOVES)(region, layout, choose)
    return None if moved == layout else moved


def one_pad_moved(region: Region, layout: Layout, choose: Choose) -> Layout | None:
    """A PAD from one gap to another."""
    gaps = list(layout.gaps)
    if not any(gaps):
        return None
    gaps[choose("from", [gap for gap, pads in enumerate(gaps) if pads])] -= 1
    gaps[choose("to", range(len(gaps)))] += 1
    return replace(layout, gaps=tuple(gaps))


def two_assignments_exchanged(region: Region, layout: Layout, choose: Choose) -> Layout:
    """Two assignments at each other's place."""
    assignments, places = list(layout.assignments), range(len(layout.assignments))
    first, second = choose("place", places), choose("place", places)
    assignments[first], assignments[second] = assignments[second], assignments[first]
    return replace(layout, assignments=tuple(assignments))


def one_letter_renamed(region: Region, layout: Layout, choose: Choose) -> Layout | None:
    """Another letter for one of those assigned; where it is assigned, too, the two exchange their names."""
    old = choose("letter", [name for name, _ in layout.assignments])
    new = choose("variable", region.task.variables)
    names: dict[str | None, str | None] = {old: new, new: old}
    left, right = (names.get(letter, letter) for letter in layout.operands)
    if (left, right) not in region.operands[layout.kind]:
        return None
    assignments = tuple((str(names.get(name, name)), value) for name, value in layout.assignments)
    return replace(layout, assignments=assignments, left=left, right=right)


def one_value_changed(region: Region, layout: Layout, choose: Choose) -> Layout | None:
    """Another constant for a distractor."""
    if not layout.distractors:
        return None
    return _with_value(layout, choose("distractor", layout.distractors), choose("value", range(region.task.modulus)))


def one_value_repeated(region: Region, layout: Layout, choose: Choose) -> Layout | None:
    """An operand's value for a distractor."""
    return distractor_repeats_operand(region.split, layout, choose)


def distractor_added(region: Region, layout: Layout, choose: Choose) -> Layout | None:
    """One distractor more, the PADs spread anew."""
    n = len(layout.assignments)
    return with_n_assignments(region.task, layout, n + 1, choose) if n < region.task.max_assignments else None


def distractor_removed(region: Region, layout: Layout, choose: Choose) -> Layout | None:
    """One distractor less, the PADs spread anew."""
    n = len(layout.assignments)
    return with_n_assignments(region.task, layout, n - 1, choose) if layout.distractors and n > 1 else None


def _with_value(layout: Layout, place: int, value: int | Mark) -> Layout:
    assignments = list(layout.assignments)
    assignments[place] = (assignments[place][0], value)
    return replace(layout, assignments=tuple(assignments))


MOVES: Sequence[Callable[[Region, Layout, Choose], Layout | None]] = (
    one_pad_moved,
    two_assignments_exchanged,
    one_letter_renamed,
    one_value_changed,
    one_value_repeated,
    distractor_added,
    distractor_removed,
)
