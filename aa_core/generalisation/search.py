"""The search for the layout that a model does worst on: at random, then from the worst found step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from aa_core.circuits.subject import Subject
from aa_core.generalisation.drawing import Region, random_choices, random_layouts
from aa_core.generalisation.layout import Layout
from aa_core.generalisation.moves import neighbour
from aa_core.generalisation.outcome import outcome

CLIMBERS = 4  # layouts that are made worse side by side, since a step that helps one may not help another
NEXT = 10  # right answers that the search tries to turn


@dataclass(frozen=True, order=True)
class Score:
    """How well a model does on a layout, worst first.

    Attributes:
        accuracy: share of the region's pairs of operand values that are answered right.
        margin: mean of the smallest margins by which answers are right; these are the next to go wrong.
    """

    accuracy: float
    margin: float


def score(subject: Subject, region: Region, layout: Layout) -> Score:
    """The score of a layout on the region's pairs of operand values."""
    _, margins = outcome(subject, layout)
    inside = margins[region.mask]
    right = np.sort(inside[inside > 0])
    return Score(len(right) / len(inside), float(right[:NEXT].mean()) if len(right) else 0.0)


def scored(subject: Subject, region: Region, layouts: Sequence[Layout]) -> list[tuple[Score, Layout]]:
    """Layouts with their scores, the worst first."""
    found = [(score(subject, region, layout), layout) for layout in layouts]
    return sorted(found, key=lambda entry: entry[0])


def scored_at_random(subject: Subject, region: Region, n: int, seed: int) -> list[tuple[Score, Layout]]:
    """`n` independent layouts of the training law with their scores, the worst first."""
    return scored(subject, region, list(islice(random_layouts(region, seed), n)))


def scored_step_by_step(
    subject: Subject, region: Region, starts: Sequence[tuple[Score, Layout]], n: int, seed: int
) -> list[tuple[Score, Layout]]:
    """The worst of the given layouts, each made worse by small changes that are kept where the score falls.

    Args:
        subject: the model.
        region: which layouts, and which pairs of operand values count.
        starts: layouts with their scores.
        n: changes to try, in all.
        seed: seed of the changes.

    Returns:
        Layouts with their scores, the worst first.
    """
    choose = random_choices(seed, 4002)
    climbers = sorted(starts, key=lambda entry: entry[0])[:CLIMBERS]
    for turn in range(n):
        place = turn % len(climbers)
        best, layout = climbers[place]
        moved = neighbour(region, layout, choose)
        if moved is not None and (new := score(subject, region, moved)) < best:
            climbers[place] = new, moved
    return sorted(climbers, key=lambda entry: entry[0])
