"""Invariants of what a run keeps: the training loop and the run store, against the updates alone."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from aa_core.checkpoints import load_checkpoint
from aa_core.gate.invariant import Finding, Invariant, first_fault
from aa_core.gate.setting import Setting
from aa_core.model.parameters import Parameters
from aa_core.runs import Run, RunStore
from aa_core.runs.environment import torch_threads
from aa_core.task.split import Split
from aa_core.training.config import TrainConfig
from aa_core.training.loop import logs_row
from aa_core.training.metrics import metrics_for
from aa_core.training.optimisation import advance, initial_state

SAVE_EVERY, STOP = 6, 9
"""A run stopped at its row of step 9 goes on from its save of step 6, and makes again what came between."""


class _StoppedError(Exception):
    """Stands for whatever ends a process."""


def kept_weights(setting: Setting) -> Finding:
    """Checkpoints and rows of a run that was trained in one go."""
    config = _short(setting)
    with tempfile.TemporaryDirectory() as folder, torch_threads(1):
        run = _store(folder).run(config)
        return first_fault(_faults(run, config, setting.split), _fine(config))


def kept_weights_after_a_stop(setting: Setting) -> Finding:
    """Checkpoints and rows of a run that was stopped between two saves and gone on with."""
    config, reached = _short(setting), []

    def stop(step: int, total: int, row: object) -> None:
        reached.append(step)
        if step == STOP:
            raise _StoppedError

    def faults() -> Iterator[str]:
        try:
            _store(folder).run(config, progress=stop)
        except _StoppedError:
            reached.clear()
        else:
            yield f"no row of step {STOP} to stop at"
        run = _store(folder).run(config, progress=lambda step, total, row: reached.append(step))
        again = [step for step in _row_steps(config) if step > SAVE_EVERY]
        if reached != again:
            yield f"after the save of step {SAVE_EVERY} come rows of the steps {reached}, expected {again}"
        yield from _faults(run, config, setting.split)

    with tempfile.TemporaryDirectory() as folder, torch_threads(1):
        return first_fault(faults(), f"{_fine(config)}, stopped at step {STOP}")


def found_again(setting: Setting) -> Finding:
    """What the store finds for the config of a finished run, and for others."""
    config = setting.with_config(steps=2, batch_size=8, decay_steps=0, log_every=1, log_sequences=8)
    others = {"seed": config.seed + 1, "learning_rate": 2 * config.learning_rate, "steps": 3}

    def faults() -> Iterator[str]:
        store, trained = _store(folder), []
        run = store.run(config)
        again = store.run(config, progress=lambda step, total, row: trained.append(step))
        if trained or again != run:
            yield "a finished run is trained again"
        for name, value in others.items():
            if store.find(dataclasses.replace(config, **{name: value})) is not None:
                yield f"a run of {name} {vars(config)[name]} is taken for one of {value}"

    with tempfile.TemporaryDirectory() as folder, torch_threads(1):
        return first_fault(faults(), f"found once, and not for another {', '.join(others)}")


def _short(setting: Setting) -> TrainConfig:
    """A run of 14 steps whose rows, saves and checkpoints fall on different steps."""
    return setting.with_config(
        steps=14, batch_size=16, decay_steps=4, log_every=3, log_sequences=16, checkpoint_every=((8, 2), (1000, 5))
    )


def _store(folder: str) -> RunStore:
    return RunStore(metrics_for, Path(folder), notify=_unexpected, save_every=SAVE_EVERY)


def _unexpected(message: str) -> None:
    raise RuntimeError(message)


def _row_steps(config: TrainConfig) -> list[int]:
    return [step for step in range(config.steps + 1) if logs_row(config, step)]


def _faults(run: Run, config: TrainConfig, split: Split) -> Iterator[str]:
    """What a run keeps, against updates without a loop or a store around them."""
    checkpoints = [load_checkpoint(path) for path in sorted(run.folder.rglob("step_*.safetensors"))]
    kept = [step for step in range(config.steps + 1) if config.keeps_checkpoint(step)]
    if [checkpoint.step for checkpoint in checkpoints] != kept:
        yield f"checkpoints of the steps {[checkpoint.step for checkpoint in checkpoints]}, expected {kept}"
    rows, logged = run.metrics(), _row_steps(config)
    if [row["step"] for row in rows] != logged:
        yield f"rows of the steps {[row['step'] for row in rows]}, expected {logged}"
    state, measure, losses = initial_state(config, torch.device("cpu")), metrics_for(config), []
    for step in range(config.steps + 1):
        losses.append(advance(state, config, split, step))
        weights = {name: weight.detach() for name, weight in state.parameters.items()}
        if step in kept:
            yield from _differences(step, checkpoints[kept.index(step)].parameters, weights)
        if step in logged:
            since = max([0, *(past for past in logged if past < step)])
            expected = {"step": step, "loss": float(np.mean(losses[since + 1 :])), **measure(weights)}
            row = rows[logged.index(step)]
            for name, value in expected.items():
                if not np.isclose(row.get(name, np.nan), value, rtol=1e-6, equal_nan=True):
                    yield f"{name} of the row of step {step} is {row.get(name)}, expected {value}"


def _differences(step: int, kept: Parameters, expected: Parameters) -> Iterator[str]:
    for name, weight in expected.items():
        if not torch.equal(kept[name], weight):
            yield f"{name} of step {step} differs by up to {float((kept[name] - weight).abs().max()):.1e}"


def _fine(config: TrainConfig) -> str:
    return f"weights equal to the bit at every kept one of {config.steps} steps"


INVARIANTS = (
    Invariant("run/kept-weights", "what a run keeps is what updates alone give, at its step", kept_weights),
    Invariant(
        "run/resume", "a run that was stopped and gone on with keeps the same to the bit", kept_weights_after_a_stop
    ),
    Invariant("run/found-again", "a finished run is found for its config and for no other", found_again),
)
