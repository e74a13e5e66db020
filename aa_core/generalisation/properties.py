"""Properties of a model: how many layouts are answered right, and as before, after an exact transformation.

A model that is right 99 % of the time breaks any "for all". So each layout is judged on all its pairs of operand
values, exactly, and the layouts are the sample: what is tested is the share of them that reach a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

import numpy as np

from aa_core.circuits.subject import Subject
from aa_core.generalisation.drawing import Region, random_choices, random_layouts
from aa_core.generalisation.layout import Layout
from aa_core.generalisation.outcome import outcome
from aa_core.generalisation.transformations import TRANSFORMATIONS, Transformation
from aa_core.statistics import Sequential, Threshold, at_least, sequential_share, shared_alpha

BOUND = 0.9
BOUND_OF_EQUAL_VALUES = 0.6
SHARE = at_least(0.7)
SHARE_OF_NEVER_SEEN = at_least(0.75)  # each of four letters is behind about a quarter: one that fails is noticed
LOOKS = (16, 32, 64, 128)

MEASURED = (
    "layouts that reach the bound among those that decided, the least over both quantities and these transformations: "
    "fixture, paper recipe seeds 0 and 2, seeds 0, 1 and 3 at 3e-3: 32 of 32; the paper's own run 63 of 64 (final), "
    "32 of 32 (14501, 16001, 25001)"
)
MEASURED_OF_NEVER_SEEN = (
    "layouts that reach the bound: fixture 64 of 64, seed 0 123 of 128, seeds 0 and 3 at 3e-3 118 and 120 of 128; the "
    "paper's own run 125 (16001) and 120 of 128 (25001), and 97 at 14501, where it has not learned b on the right: "
    "there it must not hold"
)
MEASURED_OF_EQUAL_VALUES = (
    "n + n is harder for all models, so that it has a bound of its own: the worst layout is at .76 (fixture), .71 "
    "(seed 0), .68 (seed 0 at 3e-3); the paper's own run .73 to .83"
)

# By transformation, for accuracy and for agreement; a test applies each to a model that composes.
BROKEN_BY: Mapping[str, tuple[str, str]] = {
    "position-never-seen": ("restricted-letters-unseen", "equals-ignores-right"),
    "operands-exchanged": ("equals-ignores-left", "equals-ignores-left"),
    "letters-renamed": ("one-letter-bound", "letters-merged"),
    "padding-moved": ("positions-permuted", "random"),
    "assignments-reordered": ("uniform-attention-0", "random"),
    "distractor-values-changed": ("ov0-without-variables", "qk1-rotated"),
    "number-of-distractors": ("uniform-attention-0", "qk1-rows-shuffled"),
    "operand-values-equal": ("win-permuted", "positions-permuted"),
    "distractor-repeats-operand": ("variables-equal", "qk1-rows-shuffled"),
}


@dataclass(frozen=True)
class Property:
    """What a transformation must leave as it was.

    Attributes:
        transformation: what is changed.
        quantity: the share of the pairs of operand values that are answered right after it (accuracy), or that are
            answered as before (agreement).
        broken_by: name of a control that must fail it.
        bound: what the quantity of a layout must reach.
        share: how many layouts must reach it.
        measured: the measurements that bound and share were chosen by.
    """

    transformation: Transformation
    quantity: Literal["accuracy", "agreement"]
    broken_by: str
    bound: float = BOUND
    share: Threshold = SHARE
    measured: str = MEASURED

    @property
    def id(self) -> str:
        """Such as `padding-moved-agreement`."""
        return f"{self.transformation.name}-{self.quantity}"


def _properties(transformation: Transformation) -> Iterator[Property]:
    bound, share, measured = BOUND, SHARE, MEASURED
    if transformation.name == "operand-values-equal":
        bound, measured = BOUND_OF_EQUAL_VALUES, MEASURED_OF_EQUAL_VALUES
    if transformation.name == "position-never-seen":
        share, measured = SHARE_OF_NEVER_SEEN, MEASURED_OF_NEVER_SEEN
    accuracy, agreement = BROKEN_BY[transformation.name]
    yield Property(transformation, "accuracy", accuracy, bound, share, measured)
    yield Property(transformation, "agreement", agreement, bound, share, measured)


PROPERTIES: Sequence[Property] = tuple(chain.from_iterable(map(_properties, TRANSFORMATIONS.values())))
ALPHA = shared_alpha(len(PROPERTIES))


@dataclass(frozen=True)
class Comparison:
    """A layout before and after a transformation, and the two quantities of a property."""

    before: Layout
    after: Layout
    accuracy: float
    agreement: float


@dataclass(frozen=True)
class Judged:
    """A property as it was judged.

    Attributes:
        property: the property.
        found: the share of layouts that reach the bound, and the verdict.
        worst: the layout with the least.
    """

    property: Property
    found: Sequential
    worst: Comparison

    def text(self, subject: Subject) -> str:
        """The finding in a few lines."""
        share, (low, high) = self.found.measurement, self.found.interval
        before, after = (layout.text(subject.task) for layout in (self.worst.before, self.worst.after))
        return (
            f"{self.found.verdict}: {self.property.transformation.statement} ({self.property.id})\n"
            f"  layouts with {self.property.quantity} >= {self.property.bound}: {share.count}/{share.n} "
            f"[{low:.3f}, {high:.3f}], expected {self.property.share}\n"
            f"  worst: {getattr(self.worst, self.property.quantity):.3f} in {after}  (before: {before})"
        )


def judge_property(subject: Subject, prop: Property, alpha: float = ALPHA, looks: Sequence[int] = LOOKS) -> Judged:
    """Judge a property on independent layouts of the training law; all properties share them as far as they apply.

    Args:
        subject: the model.
        prop: the property.
        alpha: error rate of the verdict.
        looks: numbers of layouts after which a verdict is tried.
    """
    cases = comparisons(subject, prop.transformation)
    seen: list[Comparison] = []

    def draw(start: int, stop: int) -> np.ndarray:
        seen.extend(islice(cases, stop - start))
        return np.array([getattr(case, prop.quantity) >= prop.bound for case in seen[start:stop]])

    found = sequential_share(draw, prop.share, alpha, looks)
    return Judged(prop, found, min(seen, key=lambda case: getattr(case, prop.quantity)))


def comparisons(subject: Subject, transformation: Transformation) -> Iterator[Comparison]:
    """Layouts of the training law and what a transformation makes of them, without end."""
    split, seed = subject.split, subject.data.seed
    choose = random_choices(seed, 4001)
    for before in random_layouts(Region(split, restricted=0), seed):
        after = transformation.apply(split, before, choose)
        if after is not None:
            yield _compared(subject, transformation, before, after)


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
