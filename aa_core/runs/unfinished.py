"""A run in training on disk: the state to go on from, and the way back to that state."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import save
from torch import Tensor

from aa_core.checkpoints import load_checkpoint
from aa_core.checkpoints.reading import read_content
from aa_core.errors import InputError
from aa_core.files import read_bytes, write_atomically
from aa_core.runs.entry import (
    CHECKPOINTS,
    CONFIG,
    METRICS,
    STATE,
    DamagedRunError,
    check_config,
    checkpoint_name,
    checkpoint_steps,
)
from aa_core.runs.key import config_json
from aa_core.training.config import TrainConfig
from aa_core.training.loop import Row, logs_row
from aa_core.training.optimisation import TrainState, initial_state, restored_state, state_tensors


@dataclass
class Progressing:
    """A run in training, as it is in memory and, at every save, on disk.

    Attributes:
        state: weights and moments.
        rows: metrics so far.
        seconds: wall-clock time of training so far.
    """

    state: TrainState
    rows: list[Row]
    seconds: float


def save_progress(folder: Path, run: Progressing) -> None:
    """Save a run at a step from which training can go on.

    The state is written last: it vouches for the metrics and checkpoints up to its step, and whatever is later than
    that is made again.

    Raises:
        InputError: the folder cannot be written.
    """
    write_atomically(folder / METRICS, "".join(json.dumps(row) + "\n" for row in run.rows).encode())
    _write_state(folder, run)


def started_or_resumed(folder: Path, config: TrainConfig, device: torch.device) -> Progressing:
    """The run as its last save left it, or at step 0 where there is none.

    What a killed process left half-written is removed, and what is later than the save will be made again.

    Raises:
        DamagedRunError: the folder is not as a process that trains this run leaves it, whenever it is killed.
        InputError: the folder cannot be read or written.
    """
    try:
        for leftover in folder.rglob(".*.tmp"):
            leftover.unlink()
        return _resumed(folder, config, device) if (folder / STATE).exists() else _started(folder, config, device)
    except OSError as error:
        raise InputError(f"cannot use {folder}: {error.strerror or error}") from error


def _started(folder: Path, config: TrainConfig, device: torch.device) -> Progressing:
    """Step 0, saved before anything else is: a folder that has more but no state is one that lost it."""
    for name in (METRICS, CHECKPOINTS):
        if (folder / name).exists():
            raise DamagedRunError(f"{STATE} is missing")
    write_atomically(folder / CONFIG, config_json(config).encode())
    run = Progressing(initial_state(config, device), [], 0.0)
    _write_state(folder, run)
    return run


def _resumed(folder: Path, config: TrainConfig, device: torch.device) -> Progressing:
    check_config(folder, config)
    header, tensors = _read_state(folder / STATE)
    if header["run"] != folder.name:
        raise DamagedRunError(f"{STATE} is of another run ({header['run']})")
    step = header["step"]
    _check_checkpoints(folder, config, step)
    rows = _read_rows(folder / METRICS, [past for past in range(step + 1) if logs_row(config, past)])
    return Progressing(restored_state(config, tensors, step, device), rows, header["seconds"])


def _write_state(folder: Path, run: Progressing) -> None:
    tensors = {name: tensor.cpu() for name, tensor in state_tensors(run.state).items()}
    header = json.dumps({"run": folder.name, "step": run.state.step, "seconds": run.seconds})
    write_atomically(folder / STATE, save(tensors, {"header": header, "sha256": _digest(tensors, header)}))


def _read_state(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    data = read_bytes(path)
    try:
        content = read_content(data)
    except InputError as error:
        raise DamagedRunError(f"{STATE} cannot be used ({error})") from error
    tensors = cast(dict[str, Tensor], dict(content.tensors))
    header = content.metadata.get("header", "")
    if content.metadata.get("sha256") != _digest(tensors, header):
        raise DamagedRunError(f"{STATE} does not match its own hash")
    return json.loads(header), tensors


def _digest(tensors: dict[str, Tensor], header: str) -> str:
    return hashlib.sha256(save(tensors, {"header": header})).hexdigest()


def _check_checkpoints(folder: Path, config: TrainConfig, step: int) -> None:
    """Check the checkpoints up to `step`; that of step 0, if training starts there, and later ones are made again."""
    steps = {checkpoint_name(past): past for past in checkpoint_steps(config)}
    for path in (folder / CHECKPOINTS).glob("*.safetensors"):
        if f"{CHECKPOINTS}/{path.name}" not in steps:
            raise DamagedRunError(f"{CHECKPOINTS}/{path.name} should not be there")
    for name, past in steps.items():
        if not 0 < step >= past:
            continue
        try:
            checkpoint = load_checkpoint(folder / name)
        except InputError as error:
            raise DamagedRunError(f"{name} cannot be used ({error})") from error
        if (checkpoint.step, checkpoint.config) != (past, config):
            raise DamagedRunError(f"{name} is of another step or run")


def _read_rows(path: Path, steps: list[int]) -> list[Row]:
    """The first rows, which must be those of `steps`."""
    lines = read_bytes(path).splitlines() if steps else []
    try:
        rows = [json.loads(line) for line in lines[: len(steps)]]
        if [row["step"] for row in rows] == steps:
            return rows
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedRunError(f"{METRICS} holds a line that is not a row of metrics") from error
    raise DamagedRunError(f"{METRICS} lacks rows up to step {steps[-1]}")
