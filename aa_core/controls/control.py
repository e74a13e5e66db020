"""What a control and a symmetry are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.subject import Subject
from aa_core.model.parameters import Parameters


@dataclass(frozen=True)
class _Rebuilding:
    """Parameters made from a model's.

    Attributes:
        name: what it is called in `Claim.broken_by` and in reports.
        statement: what is changed and what follows from it, in one sentence.
        build: from the model and a seed to the new parameters; a pure function.
    """

    name: str
    statement: str
    build: Callable[[Subject, int], Parameters]

    def apply(self, subject: Subject, seed: int) -> Subject:
        """The model with the new parameters, judged on the same data."""
        return dataclasses.replace(subject, parameters=self.build(subject, seed))


@dataclass(frozen=True)
class Control(_Rebuilding):
    """A model in which one mechanism of a good model is broken.

    Attributes:
        harmless: nothing is broken: the change looks drastic, and every claim about a checkpoint must still hold.
    """

    harmless: bool = False


@dataclass(frozen=True)
class Symmetry(_Rebuilding):
    """Other parameters of the same function, so no verdict may change."""


@dataclass(frozen=True)
class TrajectoryControl:
    """A trajectory in which an order or a jump of a good one is gone.

    Attributes:
        name: as of a `Control`.
        statement: as of a `Control`.
        build: from the trajectory and a seed to the new one, with the same steps; a pure function.
    """

    name: str
    statement: str
    build: Callable[[TrajectorySubject, int], TrajectorySubject]
