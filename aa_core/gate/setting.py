"""Where invariants are checked: a run's config, with draws of its training data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aa_core.gate.draws import Reading, reached_batch, read_tokens
from aa_core.model.config import ModelConfig
from aa_core.task.config import TaskConfig
from aa_core.task.sequences import Sequences, concatenate
from aa_core.task.split import Split, SplitConfig
from aa_core.task.training_data import training_batch
from aa_core.training.config import TrainConfig

BATCH_SIZE = 1000


@dataclass(frozen=True)
class Setting:
    """A config and what its sampler draws.

    Attributes:
        name: what reports call it.
        config: the run.
        n_batches: batches of 1,000 sequences that laws are tested on.
    """

    name: str
    config: TrainConfig
    n_batches: int = 60

    @cached_property
    def split(self) -> Split:
        """The split as training makes it."""
        return Split(self.config.task, self.config.split)

    @cached_property
    def drawn(self) -> Sequences:
        """Sequences of many batches, drawn as training draws them."""
        parts = [training_batch(self.split, self.config.seed, index, BATCH_SIZE) for index in range(self.n_batches)]
        return concatenate(parts)

    @cached_property
    def reached(self) -> Sequences:
        """Sequences that visit everything the sampler can reach, however rarely; see `reached_batch`."""
        return reached_batch(self.split, self.config.seed, max(5000, 4 * self.config.task.modulus**2))

    @cached_property
    def read(self) -> Reading:
        """`drawn`, read from its tokens."""
        return read_tokens(self.config.task, self.drawn.tokens)

    @cached_property
    def read_reached(self) -> Reading:
        """`reached`, read from its tokens."""
        return read_tokens(self.config.task, self.reached.tokens)

    @cached_property
    def kinds(self) -> np.ndarray:
        """Kind of each drawn sequence: 0 no variable, 1 left, 2 right, 3 both."""
        return self.read.is_variable @ [1, 2]

    def with_config(self, **changes: object) -> TrainConfig:
        """The config with some values changed."""
        return dataclasses.replace(self.config, **changes)  # pyright: ignore[reportArgumentType]


# No two numbers that could be taken for each other are equal, and everything that a recipe leaves at 1 or off is not.
VARIED = Setting(
    "small",
    TrainConfig(
        task=TaskConfig(modulus=7, n_variables=5, max_assignments=4, n_ctx=15),
        model=ModelConfig(d_model=16, d_head=8, d_mlp=32),
        split=SplitConfig(
            one_variable_frequency=0.5, two_variable_frequency=2.0, never_left="e", never_right="ab", seed=3
        ),
        seed=5,
        steps=40,
        batch_size=48,
        learning_rate=3e-3,
        decay_steps=10,
        weight_decay=0.1,
    ),
)
