"""Measurements along a training run: when something is learned, and how fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from aa_core.circuits.subject import Subject
from aa_core.statistics import Measurement, NotApplicable, exact

LEARNED = 0.95  # accuracy
WINDOW = 0.25  # longest span that counts as one moment, relative to the steps at its end
JUMP = 0.5  # rise of an accuracy
MOST = 0.8  # of a rise


@dataclass(frozen=True)
class TrajectorySubject:
    """Models along one training run.

    Attributes:
        steps: number of updates of each, increasing.
        subjects: the models.
    """

    steps: tuple[int, ...]
    subjects: tuple[Subject, ...]

    def __post_init__(self) -> None:
        if list(self.steps) != sorted(set(self.steps)) or len(self.steps) != len(self.subjects):
            raise ValueError("steps must increase, one a subject")

    @cached_property
    def final(self) -> Subject:
        """The last model."""
        return self.subjects[-1]

    @cached_property
    def _curves(self) -> dict[Any, Float[np.ndarray, " steps"]]:
        return {}

    def curve(self, measure: Callable[..., Measurement], **arguments: Any) -> Float[np.ndarray, " steps"]:
        """Value of `measure(subject, **arguments)` at every step, measured on the first call alone.

        Each model is measured as a copy, so that the activations that a subject keeps are let go of at once: those
        of a few hundred models do not fit into memory.
        """
        key = (measure, *sorted(arguments.items()))
        if key not in self._curves:
            self._curves[key] = np.array([measure(replace(subject), **arguments).value for subject in self.subjects])
        return self._curves[key]


def first_reached(values: Float[np.ndarray, " steps"], level: float = LEARNED) -> int | None:
    """Index of the first value of at least `level`, or None.

    First crossings, not the last time below: late in the paper's run accuracies dip for single checkpoints.
    """
    reached = np.flatnonzero(values >= level)
    return int(reached[0]) if len(reached) else None


def crossing_ratio(
    trajectory: TrajectorySubject, early: Float[np.ndarray, " steps"], late: Float[np.ndarray, " steps"]
) -> Measurement:
    """First step at which `late` reaches .95, divided by the first at which `early` does; nan where either never does.

    Step 0 counts as step 1.

    Raises:
        NotApplicable: both happen between the same two checkpoints, which are further apart than `WINDOW`.
    """
    first, second = first_reached(early), first_reached(late)
    steps = trajectory.steps
    words = ["never" if index is None else f"at step {steps[index]}" for index in (first, second)]
    note = f"first {words[0]}, then {words[1]}"
    if first is None or second is None:
        return exact(float("nan"), len(steps), note=note)
    if first == second > 0 and steps[first] - steps[first - 1] > WINDOW * steps[first]:
        raise NotApplicable(
            f"both happen between steps {steps[first - 1]} and {steps[first]}, with no checkpoint in between"
        )
    return exact(max(steps[second], 1) / max(steps[first], 1), len(steps), note=note)


class Rise(NamedTuple):
    """How much one of several curves rises between two checkpoints; all by index.

    Attributes:
        curve: which curve.
        start: checkpoint before.
        end: checkpoint after.
        height: the rise.
    """

    curve: int
    start: int
    end: int
    height: float


def sudden_rise(trajectory: TrajectorySubject, curves: Float[np.ndarray, "curves steps"]) -> Rise:
    """The shortest window, relative to the steps at its end, with most (`MOST`) of the largest rise of any curve.

    Windows are at most `WINDOW` long, so that sudden means the same in a recipe that learns faster.

    Raises:
        NotApplicable: no rise in a window reaches `JUMP`, but one does between neighbours further apart than that.
    """
    steps = np.array(trajectory.steps)
    height = curves[:, None] - curves[:, :, None]  # [curve, start, end]
    width = (steps - steps[:, None]) / np.maximum(steps, 1)
    allowed = (width > 0) & (width <= WINDOW)
    largest = height[:, allowed].max(initial=0)
    apart = np.flatnonzero((np.diff(curves) >= JUMP).any(0) & ~allowed.diagonal(1))
    if largest < JUMP and len(apart):
        before, after = steps[apart[0] : apart[0] + 2]
        raise NotApplicable(f"steps {before} and {after} are too far apart to tell whether the rise is sudden")
    chosen = np.where(allowed & (height >= MOST * largest), width, np.inf).argmin()
    curve, start, end = (int(index) for index in np.unravel_index(chosen, height.shape))
    return Rise(curve, start, end, float(height[curve, start, end]))
