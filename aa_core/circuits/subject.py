"""A model under test, with the sequences that several measurements share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from aa_core.model.parameters import Parameters
from aa_core.model.symbol_space import Activations, Tables, forward, symbol_tables
from aa_core.task.config import TaskConfig
from aa_core.task.sampling import KINDS, POOLS, Kind, full_prefix_sequences, pool_sequences
from aa_core.task.sequences import NO_VARIABLE, Sequences, draw_sequences
from aa_core.task.split import Split

T = TypeVar("T")

CHUNK = 1024  # sequences a forward pass; keeps the working set in the processor's cache


@dataclass(frozen=True)
class DataConfig:
    """How much data measurements draw, and from which seed.

    Attributes:
        seed: seed of every draw; the sequences depend on it, the split and the task alone.
        full_prefix: sequences of each kind with a full prefix of distinct values.
        pool: sequences of each evaluation pool.
        pairs: operand pairs in comparisons between kinds.
        probe: sequences that probes are fitted on; they are scored on others.
        gradient: training-law sequences in the batch of which gradients are taken.
        causal: sequences of each kind that are intervened on, at most `full_prefix`.
    """

    seed: int = 54321
    full_prefix: int = 2000
    pool: int = 2000
    pairs: int = 1500
    probe: int = 3000
    gradient: int = 4096
    causal: int = 1000


class Run(NamedTuple):
    """Sequences and what the model computed on them."""

    sequences: Sequences
    activations: Activations

    @property
    def predictions(self) -> Int[Tensor, " n"]:
        """Most likely answer to each sequence."""
        return self.activations.logits.argmax(-1)

    @property
    def correct(self) -> np.ndarray:
        """Whether each answer is right, bool [n]."""
        return self.predictions.numpy() == self.sequences.answers


@cache
def _full_prefix(split: Split, kind: Kind, data: DataConfig) -> Sequences:
    return full_prefix_sequences(split, kind, data.full_prefix, data.seed)


@cache
def _pool(split: Split, name: str, data: DataConfig) -> Sequences | None:
    return pool_sequences(split, POOLS[name], data.pool, data.seed)


@dataclass(frozen=True)
class Subject:
    """A model, the split that it is judged under, and the data that it is judged on.

    Runs on shared data are computed once and kept, so measurements can ask for the same run.
    """

    parameters: Parameters
    split: Split
    data: DataConfig = field(default_factory=DataConfig)

    @property
    def final(self) -> Subject:
        """Itself, as the last of one: what a trajectory's `final` is to many."""
        return self

    @property
    def task(self) -> TaskConfig:
        """Sizes of the task."""
        return self.split.task

    @cached_property
    def tables(self) -> Tables:
        """The tables of the fast forward pass."""
        with torch.no_grad():
            return symbol_tables(self.task, self.parameters)

    def run(self, sequences: Sequences) -> Run:
        """The model's activations on any sequences."""
        tokens = torch.from_numpy(sequences.tokens)
        parts = [forward(self.tables, chunk) for chunk in tokens.split(CHUNK)]
        return Run(sequences, Activations(*(torch.cat(tensors) for tensors in zip(*parts, strict=True))))

    def full_prefix(self, kind: Kind) -> Run:
        """The run on full prefixes with distinct values."""
        return self.once(_full_prefix_run, kind=kind)

    def full_prefixes(self, kinds: Sequence[Kind] = KINDS) -> list[Run]:
        """`full_prefix` for several kinds."""
        return [self.full_prefix(kind) for kind in kinds]

    def pool(self, name: str) -> Run | None:
        """The run on an evaluation pool; None where the split has no such sequence."""
        return self.once(_pool_run, name=name)

    @cached_property
    def grid(self) -> Run:
        """All `modulus**2` sums after a prefix of PADs, in row-major order."""
        return self.run(grid_sequences(self.task))

    @cached_property
    def _results(self) -> dict[Any, Any]:
        return {}

    def once(self, compute: Callable[..., T], **arguments: Any) -> T:
        """`compute(self, **arguments)`, computed on the first call alone; a function of the module level."""
        key = (compute, *sorted(arguments.items()))
        if key not in self._results:
            self._results[key] = compute(self, **arguments)
        return self._results[key]

    def variable_embeddings(self) -> Float[Tensor, "n_variables d_model"]:
        """Rows of `W_E` of the variables."""
        return self.parameters["embed.W_E"][self.task.first_variable_token :]

    def constant_embeddings(self) -> Float[Tensor, "modulus d_model"]:
        """Rows of `W_E` of the constants."""
        return self.parameters["embed.W_E"][: self.task.modulus]


def _full_prefix_run(subject: Subject, kind: Kind) -> Run:
    return subject.run(_full_prefix(subject.split, kind, subject.data))


def _pool_run(subject: Subject, name: str) -> Run | None:
    sequences = _pool(subject.split, name, subject.data)
    return None if sequences is None else subject.run(sequences)


def grid_sequences(task: TaskConfig) -> Sequences:
    """Every ordered pair of constants once, after a prefix of PADs alone."""
    m = task.modulus
    values = np.stack(np.divmod(np.arange(m * m), m), axis=1)
    tokens = np.full((m * m, task.n_ctx), task.pad_token)
    tokens[:, task.plus_position] = task.plus_token
    tokens[:, [task.left_position, task.right_position]] = values
    tokens[:, task.equals_position] = task.equals_token
    sources = np.broadcast_to([task.left_position, task.right_position], values.shape)
    return Sequences(tokens, values.sum(1) % m, values, np.full_like(values, NO_VARIABLE), sources)


def zero_variable_sequences(task: TaskConfig, pairs: Int[np.ndarray, "n 2"], seed: int) -> Sequences:
    """Each pair once as constant + constant, each in a random prefix of `1 .. max_assignments` assignments."""
    rng = np.random.default_rng(np.random.Philox(key=np.array([seed, 2000], dtype=np.uint64)))
    n_assignments = rng.integers(1, task.max_assignments + 1, len(pairs))
    return draw_sequences(task, rng, pairs, np.full_like(pairs, NO_VARIABLE), n_assignments)
