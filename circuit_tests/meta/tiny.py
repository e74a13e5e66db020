"""A run small enough to train hundreds of times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aa_core.model.config import ModelConfig
from aa_core.model.parameters import Parameters
from aa_core.runs import Run, RunStore
from aa_core.runs.key import run_name
from aa_core.task.config import TaskConfig
from aa_core.task.split import SplitConfig
from aa_core.training.codehash import training_code_hash
from aa_core.training.config import TrainConfig

# Rows and checkpoints fall on different steps, and the last step on neither interval.
TINY = TrainConfig(
    task=TaskConfig(modulus=7, n_variables=4, max_assignments=2, n_ctx=8),
    model=ModelConfig(d_model=16, d_head=8, d_mlp=32),
    split=SplitConfig(never_left="d", never_right="a"),
    steps=47,
    batch_size=32,
    learning_rate=3e-3,
    decay_steps=10,
    log_every=5,
    checkpoint_every=((20, 4), (1000, 10)),
)


def weight_norms(parameters: Parameters) -> dict[str, float]:
    return {name: parameter.norm().item() for name, parameter in parameters.items()}


def tiny_store(root: Path, messages: list[str] | None = None) -> RunStore:
    """A store that saves every other row and notes its messages."""
    notify = messages.append if messages is not None else unexpected
    return RunStore(lambda config: weight_norms, root, notify, save_every=10)


def unexpected(message: str) -> None:
    raise AssertionError(f"unexpected message: {message}")


def contents(run: Run) -> dict[str, bytes]:
    """Every file of a run by its path, without the manifest, which holds the time that training took."""
    paths = sorted(path for path in run.folder.rglob("*") if path.is_file() and path.name != "manifest.json")
    return {str(path.relative_to(run.folder)): path.read_bytes() for path in paths}


class StoppedError(Exception):
    """Stands for whatever ends a process that can still clean up."""


def stop_at(step: int, error: type[BaseException] = StoppedError) -> Callable[..., None]:
    def progress(reached: int, total: int, row: object) -> None:
        if reached == step:
            raise error

    return progress


def unfinished(root: Path) -> Path:
    """The tiny run interrupted at step 35, saved at step 30."""
    with pytest.raises(StoppedError):
        tiny_store(root).run(TINY, progress=stop_at(35))
    return root / "runs" / run_name(TINY, training_code_hash())
