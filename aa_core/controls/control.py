"""What a control and a symmetry are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from aa_core.checkpoints import load_checkpoint
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.subject import Subject
from aa_core.errors import InputError
from aa_core.fixtures import fixtures
from aa_core.model.parameters import Parameters
from aa_core.task.split import Split
from aa_core.training.config import TrainConfig


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
        return replace(subject, parameters=self.build(subject, seed))


@dataclass(frozen=True)
class Control(_Rebuilding):
    """A model in which one mechanism of a good model is broken.

    Attributes:
        spares: families of claims that have nothing to do with the mechanism, so those about a checkpoint must hold.
        harmless: nothing is broken: the change looks drastic, and every claim about a checkpoint must still hold.
    """

    spares: tuple[str, ...] = ()
    harmless: bool = False


@dataclass(frozen=True)
class Symmetry(_Rebuilding):
    """Other parameters of the same function, so no verdict may change."""


@dataclass(frozen=True)
class TrainedControl:
    """A model that training, not an edit, left without what the claims say.

    Attributes:
        name: as of a `Control`, and of its file.
        statement: how it was trained and what it lacks, in one sentence.
        config: the run; the weights after its last step are committed.
        breaks: families or ids of claims that must fail.
        spares: families or ids of claims that must hold.
    """

    name: str
    statement: str
    config: TrainConfig
    breaks: tuple[str, ...]
    spares: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The committed weights."""
        return fixtures() / "trained" / f"{self.name}.safetensors"

    def apply(self, subject: Subject, seed: int) -> Subject:
        """The trained model, judged on its own training pairs with the data sizes of `subject`; `seed` changes nothing.

        Raises:
            InputError: as `load`.
        """
        split = replace(self.config.split, one_variable_frequency=1.0, two_variable_frequency=1.0)
        return Subject(self.load(), Split(self.config.task, split), subject.data)

    def load(self) -> Parameters:
        """The committed weights.

        Raises:
            InputError: the file is missing, damaged, or of another run.
        """
        remedy = "restore it, or rebuild it with aa fixture --trained"
        if not self.path.is_file():
            raise InputError(f"{self.path} is missing: {remedy}")
        checkpoint = load_checkpoint(self.path)
        if (checkpoint.config, checkpoint.step) != (self.config, self.config.steps):
            raise InputError(f"{self.path} is not the last step of the run that this control names: {remedy}")
        return checkpoint.parameters


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
