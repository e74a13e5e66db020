"""The checkpoints of one training run in the order of their steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from aa_core.checkpoints.checkpoint import Checkpoint, load_checkpoint
from aa_core.errors import InputError
from aa_core.model.config import ModelConfig
from aa_core.task.config import TaskConfig
from aa_core.task.split import Split, SplitConfig

SUFFIXES = frozenset({".safetensors", ".pth", ".pt"})


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Checkpoints of one run.

    Attributes:
        checkpoints: by step, at least one; one without a step is last, as the final one.
        path: the folder.

    Raises:
        InputError: there is none, they are out of order, two have the same step, or they differ in sizes, split or
            training config.
    """

    checkpoints: tuple[Checkpoint, ...]
    path: Path

    def __post_init__(self) -> None:
        if not self.checkpoints:
            raise InputError(
                f"no checkpoint in {self.path}, expected {', '.join(sorted(SUFFIXES))} files there or in checkpoints/"
            )
        for earlier, later in pairwise(self.checkpoints):
            if _order(earlier) == _order(later):
                step = "no step in their names" if later.step is None else f"step {later.step}"
                raise InputError(f"{earlier.path} and {later.path} both have {step}; keep one of them")
            if _order(earlier) > _order(later):
                raise InputError(f"{earlier.path} is later than {later.path}, expected checkpoints sorted by step")
        for checkpoint in self.checkpoints[1:]:
            if _run(checkpoint) != _run(self.checkpoints[0]):
                raise InputError(
                    f"{checkpoint.path} has other sizes, split or training config than {self.checkpoints[0].path}; "
                    "keep the checkpoints of one run in a folder"
                )

    @property
    def task(self) -> TaskConfig:
        """Sizes of the task."""
        return self.checkpoints[0].task

    @property
    def model(self) -> ModelConfig:
        """Widths of the model."""
        return self.checkpoints[0].model

    @property
    def split(self) -> Split:
        """What training was allowed to see."""
        return self.checkpoints[0].split

    @property
    def final(self) -> Checkpoint:
        """The last checkpoint."""
        return self.checkpoints[-1]

    def __len__(self) -> int:
        return len(self.checkpoints)

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self.checkpoints)


def load_trajectory(folder: str | Path, split: SplitConfig | None = None) -> Trajectory:
    """Every checkpoint file of a folder, or of its `checkpoints/` subfolder if it has one; hidden files are ignored.

    All of them are held in memory, 1.1 MB each in the paper's sizes.

    Raises:
        InputError: the folder cannot be read, a file cannot be loaded (see `load_checkpoint`), or they are not one
            run (see `Trajectory`).
    """
    folder = Path(folder)
    source = folder / "checkpoints" if (folder / "checkpoints").is_dir() else folder
    try:
        paths = sorted(source.iterdir())
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}, expected a folder of checkpoints") from error
    checkpoints = [
        load_checkpoint(path, split)
        for path in paths
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and not path.is_dir()
    ]
    trajectory = Trajectory(tuple(sorted(checkpoints, key=_order)), folder)
    # The same split object for all, so that its pairs are drawn once.
    shared = tuple(dataclasses.replace(checkpoint, split=trajectory.split) for checkpoint in trajectory)
    return Trajectory(shared, folder)


def load_subject(path: str | Path, split: SplitConfig | None = None) -> Checkpoint | Trajectory:
    """The checkpoint in a file, or the trajectory in a folder.

    Raises:
        InputError: see `load_checkpoint` and `load_trajectory`.
    """
    return load_trajectory(path, split) if Path(path).is_dir() else load_checkpoint(path, split)


def _order(checkpoint: Checkpoint) -> tuple[bool, int]:
    return checkpoint.step is None, checkpoint.step or 0


def _run(checkpoint: Checkpoint) -> tuple[object, ...]:
    return checkpoint.task, checkpoint.model, checkpoint.split, checkpoint.config
