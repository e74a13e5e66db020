"""Everything that determines a training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from aa_core.errors import InputError
from aa_core.model.config import ModelConfig
from aa_core.task.config import TaskConfig
from aa_core.task.split import SplitConfig


@dataclass(frozen=True)
class TrainConfig:
    """A training run; the defaults are the paper's recipe, in float32.

    Attributes:
        seed: seed of the initial weights and of the order of data.
        steps: optimiser steps.
        batch_size: fresh sequences a step.
        learning_rate: AdamW's, constant up to the decay.
        decay_steps: the last steps, over which the learning rate falls linearly to 0.
        beta1, beta2, eps, weight_decay: AdamW's; the decay acts on every parameter.
        init_scale: weights start normal with std `init_scale / sqrt(d_model)`.
        precision: of the matrix products; `bfloat16` means autocast, with float32 weights.
        log_every: steps between rows of metrics.
        log_sequences: sequences of each evaluation pool in such a row.
        checkpoint_every: pairs (last step, interval), in order: up to that step a checkpoint every so many.
            Step 0 and the last step are always kept.

    Raises:
        InputError: a value is out of range.
    """

    task: TaskConfig = field(default_factory=TaskConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    split: SplitConfig = field(default_factory=SplitConfig)
    seed: int = 0
    steps: int = 40_000
    batch_size: int = 512
    learning_rate: float = 1e-3
    decay_steps: int = 0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.02
    init_scale: float = 0.8
    precision: Literal["float32", "bfloat16"] = "float32"
    log_every: int = 100
    log_sequences: int = 500
    checkpoint_every: tuple[tuple[int, int], ...] = ((1_000, 100), (10_000, 200), (1_000_000_000, 1_000))

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed is {self.seed}, expected 0 to 2**63 - 1")
        for name in ("steps", "batch_size", "log_every", "log_sequences"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, expected at least 1")
        if not 0 <= self.decay_steps <= self.steps:
            raise InputError(f"decay_steps is {self.decay_steps}, expected 0 to steps ({self.steps})")
        for name in ("learning_rate", "eps", "init_scale"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{name} is {getattr(self, name)}, expected above 0 and finite")
        if not 0 <= self.weight_decay < float("inf"):
            raise InputError(f"weight_decay is {self.weight_decay}, expected at least 0 and finite")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, expected 0 <= {name} < 1")
        if any(interval < 1 for _, interval in self.checkpoint_every):
            raise InputError(f"checkpoint_every is {self.checkpoint_every}, expected intervals of at least 1 step")

    def learning_rate_at(self, step: int) -> float:
        """Learning rate of the update that follows `step` finished ones."""
        left = self.steps - step
        return self.learning_rate * (left / self.decay_steps if left < self.decay_steps else 1.0)

    def keeps_checkpoint(self, step: int) -> bool:
        """Whether the weights after `step` updates are kept."""
        if step in (0, self.steps):
            return True
        return next((step % interval == 0 for last, interval in self.checkpoint_every if step <= last), False)
