"""Properties of a model: how many layouts are answered right, and as before, after an exact transformation.

A model that is right 99 % of the time breaks any "for all". So the sample is one of layouts: each is judged on all
its pairs of operand values, exactly, and what has an interval is the share of layouts that reach a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from jaxtyping import Float

from aa_core.circuits.subject import Subject
from aa_core.generalisation.drawing import Region, random_choices, random_layouts
from aa_core.generalisation.layout import Layout
from aa_core.generalisation.outcome import outcome
from aa_core.generalisation.transformations import Transformation
from aa_core.statistics import Measurement, share


@dataclass(frozen=True)
class Comparison:
    """A layout before and after a transformation.

    Attributes:
        before: the layout.
        after: what it became.
        accuracy: share of the pairs of operand values that are answered right after it.
        agreement: share of the pairs of operand values that are answered as before.
    """

    before: Layout
    after: Layout
    accuracy: float
    agreement: float


def transformed(subject: Subject, transformation: Transformation, n: int) -> list[Comparison]:
    """`n` independent layouts of the training law, each compared with what a transformation makes of it.

    All transformations that apply to a layout share it.
    """
    return [_compared(subject, transformation, *case) for case in islice(_cases(subject, transformation), n)]


def _cases(subject: Subject, transformation: Transformation) -> Iterator[tuple[Layout, Layout]]:
    split, seed = subject.split, subject.data.seed
    choose = random_choices(seed, 4001)
    for before in random_layouts(Region(split, restricted=0), seed):
        after = transformation.apply(split, before, choose)
        if after is not None:
            yield before, after


def _compared(subject: Subject, transformation: Transformation, before: Layout, after: Layout) -> Comparison:
    pairs_before, pairs_after = transformation.pairs(subject.task.modulus)
    old, new = outcome(subject, before), outcome(subject, after)
    answers = old.answers[tuple(pairs_before.T)], new.answers[tuple(pairs_after.T)]
    return Comparison(
        before,
        after,
        accuracy=float(new.correct[tuple(pairs_after.T)].mean()),
        agreement=float((answers[0] == answers[1]).mean()),
    )


def share_reaching(subject: Subject, comparisons: list[Comparison], quantity: str, bound: float) -> Measurement:
    """Share of layouts whose `accuracy` or `agreement` is at least `bound`; the note names the worst."""
    values: Float[np.ndarray, " n"] = np.array([getattr(comparison, quantity) for comparison in comparisons])
    worst = comparisons[int(values.argmin())]
    texts = (layout.text(subject.task) for layout in (worst.before, worst.after))
    return share(values >= bound, note=f"worst {quantity} {values.min():.3f}: " + "  ->  ".join(texts))
