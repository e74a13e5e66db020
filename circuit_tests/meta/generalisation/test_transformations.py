"""Exact transformations: what they change, and that the sums stay."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from aa_core.generalisation.drawing import Region, random_choices, random_layouts
from aa_core.generalisation.layout import Layout, Mark
from aa_core.generalisation.transformations import TRANSFORMATIONS, n_restricted
from aa_core.task.config import TaskConfig
from aa_core.task.split import Split, SplitConfig

PAPER = TaskConfig()
SPLIT = Split(PAPER, SplitConfig())


@pytest.fixture(scope="module")
def layouts() -> list[Layout]:
    return list(islice(random_layouts(Region(SPLIT, restricted=0), 0), 300))


def changed(name: str, layouts: list[Layout]) -> list[tuple[Layout, Layout]]:
    choose = random_choices(1, 0)
    cases = [(layout, TRANSFORMATIONS[name].apply(SPLIT, layout, choose)) for layout in layouts]
    return [(before, after) for before, after in cases if after is not None]


def kept(before: Layout, after: Layout) -> set[str]:
    """What the two have in common."""
    old, new = dict(before.assignments), dict(after.assignments)
    same = {
        "operands": before.operands == after.operands,
        "gaps": before.gaps == after.gaps,
        "letters": list(old) == list(new),
        "letters in any order": set(old) == set(new),
        "values": list(old.values()) == list(new.values()),
        "assignments in any order": old == new,
        "number": len(old) == len(new),
        "kind": before.kind == after.kind,
    }
    return {what for what, equal in same.items() if equal}


ALL = {"operands", "gaps", "letters", "letters in any order", "values", "assignments in any order", "number", "kind"}
NEVER_CHANGED = {
    "position-never-seen": {"gaps", "letters", "letters in any order", "number"},
    "operands-exchanged": {"gaps", "letters", "letters in any order", "number"},
    "letters-renamed": {"gaps", "values", "number", "kind"},
    "padding-moved": ALL - {"gaps"},
    "assignments-reordered": ALL - {"letters", "values"},
    "distractor-values-changed": ALL - {"values", "assignments in any order"},
    "number-of-distractors": {"operands", "kind"},
    "operand-values-equal": ALL,
    "distractor-repeats-operand": ALL - {"values", "assignments in any order"},
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_what_changes(name: str, layouts: list[Layout]) -> None:
    cases = changed(name, layouts)
    assert len(cases) > 20, "it hardly ever applies"
    assert set.intersection(*(kept(before, after) for before, after in cases)) == NEVER_CHANGED[name]


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_sums_stay_and_sequences_are_valid(name: str, layouts: list[Layout]) -> None:
    before, after = TRANSFORMATIONS[name].pairs(PAPER.modulus)
    assert len(before) == PAPER.modulus**2
    assert (before.sum(1) % PAPER.modulus == after.sum(1) % PAPER.modulus).all()
    assert len(np.unique(before, axis=0)) == len(before), "every pair is compared once"
    for _, layout in changed(name, layouts):
        layout.check(PAPER)
        assert bool(n_restricted(SPLIT, layout)) == (name == "position-never-seen")


def test_every_case_occurs(layouts: list[Layout]) -> None:
    never_seen = [after for _, after in changed("position-never-seen", layouts)]
    assert {letter for layout in never_seen for letter in layout.operands} >= set("abkl")
    numbers = {
        len(after.assignments) - len(before.assignments) for before, after in changed("number-of-distractors", layouts)
    }
    assert min(numbers) < -2
    assert max(numbers) > 2
    repeated = {
        (after.kind, after.assignments[place][1])
        for _, after in changed("distractor-repeats-operand", layouts)
        for place in after.distractors
    }
    assert {mark for _, mark in repeated} >= {Mark.LEFT, Mark.RIGHT}
    assert len({kind for kind, mark in repeated if mark is Mark.LEFT}) == 4, "in every kind"
    equal = TRANSFORMATIONS["operand-values-equal"].pairs(PAPER.modulus)[1]
    assert (equal[:, 0] == equal[:, 1]).all()
