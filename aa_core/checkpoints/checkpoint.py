"""One checkpoint: the weights of a model and the task that they were trained on."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

import safetensors.torch
from torch import Tensor

from aa_core.checkpoints.formats import OWN, foreign_layout, inferred_sizes
from aa_core.checkpoints.header import Header, header_of
from aa_core.checkpoints.reading import read_content
from aa_core.errors import InputError
from aa_core.files import read_bytes, write_atomically
from aa_core.model.config import ModelConfig, parameter_shapes
from aa_core.model.parameters import Parameters
from aa_core.task.config import TaskConfig
from aa_core.task.split import Split, SplitConfig
from aa_core.training.config import TrainConfig
from aa_core.training.recipes import recipe_name


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A loaded checkpoint.

    Attributes:
        parameters: float32 on the CPU, with the names, shapes and order of `parameter_shapes(task, model)`.
        task: sizes of the task.
        model: widths of the model.
        split: what training was allowed to see; an assumption for a foreign file, see `load_checkpoint`.
        step: finished updates, None if a foreign file's name does not say.
        format: `assign-and-add`, `hooked-transformer` or `transformer-bridge`.
        path: the file.
        sha256: `weights_sha256` of the parameters, the same for the same weights in any format.
        config: the training run, None for a foreign file.
    """

    parameters: dict[str, Tensor] = field(repr=False)
    task: TaskConfig
    model: ModelConfig
    split: Split
    step: int | None
    format: str
    path: Path
    sha256: str
    config: TrainConfig | None

    @property
    def final(self) -> Checkpoint:
        """Itself, as the last of one: what a trajectory's `final` is to many."""
        return self


def weights_sha256(parameters: Parameters) -> str:
    """SHA-256 in hex of names, shapes and little-endian float32 bytes, in the order of the dictionary."""
    digest = hashlib.sha256()
    for name, parameter in parameters.items():
        digest.update(f"{name} {tuple(parameter.shape)}\n".encode())
        digest.update(parameter.detach().cpu().contiguous().numpy().astype("<f4", copy=False).data)
    return digest.hexdigest()


def save_checkpoint(path: str | Path, parameters: Parameters, config: TrainConfig, step: int) -> None:
    """Write the weights after `step` updates of a run, with all of its config; equal arguments give equal bytes.

    Raises:
        InputError: the file cannot be written, the weights do not fit the config or are not finite, or the step
            is negative.
    """
    path = Path(path)
    try:
        weights = OWN.parameters(OWN.weights(parameters), parameter_shapes(config.task, config.model))
        OWN.check_finite(weights)
        header = Header(step, recipe_name(config), config, weights_sha256(weights))
    except InputError as error:
        raise InputError(f"cannot save {path}: {error}") from error
    tensors = {name: weight.cpu() for name, weight in weights.items()}
    write_atomically(path, safetensors.torch.save(tensors, header.metadata()))


def load_checkpoint(path: str | Path, split: SplitConfig | None = None) -> Checkpoint:
    """Load a checkpoint of ours or of TransformerLens; the content says which, not the name.

    Ours carry everything. A foreign file's sizes are inferred from its shapes, its step from its name
    (`checkpoint_step_401.pth`). Its split is in no file: without `split` it is taken to be the paper's, whose
    restricted letters (`a`, `b`, `k`, `l`) are dropped where a smaller vocabulary lacks them.

    Args:
        path: the file.
        split: what training was allowed to see, in place of the header's or the paper's.

    Raises:
        InputError: the file cannot be read, is damaged, or is no checkpoint of this architecture; or the split
            does not fit its task. No code of the file runs.
    """
    path = Path(path)
    data = read_bytes(path)
    try:
        return _checkpoint(path, data, split)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _checkpoint(path: Path, data: bytes, split: SplitConfig | None) -> Checkpoint:
    tensors, metadata = read_content(data)
    header = header_of(metadata)
    layout = OWN if header else foreign_layout(tensors)
    weights = layout.weights(tensors)
    task, model = (header.config.task, header.config.model) if header else inferred_sizes(weights)
    parameters = layout.parameters(weights, parameter_shapes(task, model))
    sha256 = weights_sha256(parameters)
    if header and header.sha256 != sha256:
        raise InputError("damaged: the weights are not those that were saved; copy or write it again")
    layout.check_finite(parameters)
    if split is None:
        split = header.config.split if header else _paper_split(task)
    return Checkpoint(
        parameters=parameters,
        task=task,
        model=model,
        split=_drawn(task, split),
        step=header.step if header else step_in_name(path.name),
        format=layout.format,
        path=path,
        sha256=sha256,
        config=header.config if header else None,
    )


def _drawn(task: TaskConfig, split: SplitConfig) -> Split:
    try:
        return Split(task, split)
    except InputError as error:
        letters = f"never_left is {split.never_left!r}, never_right {split.never_right!r}"
        raise InputError(f"the split does not fit the task, give another ({letters}): {error}") from error


def _paper_split(task: TaskConfig) -> SplitConfig:
    paper = SplitConfig()
    never = (paper.never_left, paper.never_right)
    left, right = ("".join(letter for letter in letters if letter in task.variables) for letters in never)
    return SplitConfig(never_left=left, never_right=right)


def step_in_name(name: str) -> int | None:
    """The last integer after `step` in a file's name, None without one: 401 for `checkpoint_step_401.pth`."""
    steps = re.findall(r"step[ _=-]*([0-9]+)", name, re.IGNORECASE)
    return int(steps[-1]) if steps else None
