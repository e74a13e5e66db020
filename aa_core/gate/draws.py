"""Draws of the sampler that reach everything, and an independent reading of token rows."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from jaxtyping import Bool, Int

from aa_core.task.config import TaskConfig
from aa_core.task.sequences import NO_VARIABLE, Sequences
from aa_core.task.split import Split, SplitConfig
from aa_core.task.training_data import training_batch

EXTREME = 0.1  # share of uniform draws that are their least or their largest value


class ReachingGenerator(np.random.Generator):
    """A generator whose draws reach everything that draws can reach, however improbable.

    Integers take every value in their range equally often, in random order. Uniform numbers are exactly 0, or the
    largest below 1, in a tenth of the cases each: so a branch taken with any probability above 0 is taken.
    """

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))
        self.n_calls = 0

    def integers(self, low: Any, high: Any = None, size: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Every value of the range in turn, shuffled."""
        self.n_calls += 1
        low, high = (0, low) if high is None else (low, high)
        values = low + np.arange(np.prod(size or 1), dtype=np.int64) % (high - low)
        self.shuffle(values)
        return values.reshape(size) if size is not None else values[0]

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Uniform on [0, 1), with the ends far too often."""
        self.n_calls += 1
        values = np.asarray(super().random(size, dtype))
        ends = super().random(size)
        values = np.where(ends < EXTREME, 0, np.where(ends > 1 - EXTREME, np.nextafter(dtype(1), dtype(0)), values))
        return values.astype(dtype)


def reached_batch(split: Split, seed: int, size: int) -> Sequences:
    """A training batch from a generator that reaches everything: each training pair, each letter, each branch.

    Raises:
        RuntimeError: the sampler does not draw through `numpy.random.default_rng` any more.
    """
    generator = ReachingGenerator()
    with mock.patch.object(np.random, "default_rng", return_value=generator):
        batch = training_batch(split, seed, 0, size)
    if not generator.n_calls:
        raise RuntimeError("the sampler does not draw through numpy.random.default_rng: what it reaches is not known")
    return batch


def reference_seen(task: TaskConfig, split: SplitConfig) -> Bool[np.ndarray, "modulus modulus"]:
    """The training pairs as the paper's code draws them, without the help of `Split`."""
    pairs = [(left, right) for left in range(task.modulus) for right in range(task.modulus)]
    seen = np.zeros((task.modulus, task.modulus), dtype=bool)
    for left, right in random.Random(split.seed).sample(pairs, int(split.train_fraction * task.modulus * task.modulus)):
        seen[left, right] = True
    return seen


@dataclass(frozen=True)
class Reading:
    """Sequences as their tokens say.

    Attributes:
        well_formed: the prefix is assignments of distinct letters among PADs, then `+ operand operand =`, with every
            variable operand assigned once and no letter twice; the rest means something only where this is True.
        variables: operand letters, `NO_VARIABLE` for a constant.
        sources: positions of the constants that the operands stand for.
        values: these constants.
        letters: letters assigned, in order, then `NO_VARIABLE`.
        constants: what they are assigned.
        starts: positions of their assignments, then the length of the prefix.
    """

    well_formed: Bool[np.ndarray, " n"]
    variables: Int[np.ndarray, "n 2"]
    sources: Int[np.ndarray, "n 2"]
    values: Int[np.ndarray, "n 2"]
    letters: Int[np.ndarray, "n slots"]
    constants: Int[np.ndarray, "n slots"]
    starts: Int[np.ndarray, "n slots+1"]

    @property
    def is_variable(self) -> Bool[np.ndarray, "n 2"]:
        """Which operands are variables."""
        return self.variables != NO_VARIABLE

    @property
    def n_assignments(self) -> Int[np.ndarray, " n"]:
        """Assignments in each prefix."""
        return (self.letters != NO_VARIABLE).sum(axis=1)


def read_tokens(task: TaskConfig, tokens: Int[np.ndarray, "n n_ctx"]) -> Reading:
    """Read token rows by what the description of the task says of them."""
    rows, first_letter = np.arange(len(tokens)), task.modulus + 3
    prefix, (plus, left, right, equals) = tokens[:, : task.n_ctx - 4], tokens[:, -4:].T
    is_letter = prefix >= first_letter
    after_letter = np.pad(is_letter, ((0, 0), (1, 0)))[:, :-1]
    is_constant = prefix < task.modulus
    well_formed = (plus == task.modulus) & (equals == task.modulus + 1)
    well_formed &= (is_constant == after_letter).all(axis=1) & ~is_letter[:, -1]
    well_formed &= (is_letter | is_constant | (prefix == task.modulus + 2)).all(axis=1)
    n_of_letter = np.stack(
        [(prefix == first_letter + letter).sum(axis=1) for letter in range(task.n_variables)], axis=1
    )
    well_formed &= (n_of_letter <= 1).all(axis=1) & (n_of_letter.sum(axis=1) >= 1)

    variables, sources = [], []
    for position, operand in ((task.n_ctx - 3, left), (task.n_ctx - 2, right)):
        is_variable = operand >= first_letter
        assigned = prefix == operand[:, None]
        well_formed &= np.where(is_variable, assigned.sum(axis=1) == 1, operand < task.modulus)
        variables.append(np.where(is_variable, operand - first_letter, NO_VARIABLE))
        sources.append(np.where(is_variable, assigned.argmax(axis=1) + 1, position))
    well_formed &= (variables[0] != variables[1]) | (variables[0] == NO_VARIABLE)
    at = np.stack(sources, axis=1)

    slots = task.max_assignments
    well_formed &= is_letter.sum(axis=1) <= slots
    starts = np.argsort(~is_letter, axis=1, kind="stable")[:, :slots]  # positions of letters first, in order
    present = np.take_along_axis(is_letter, starts, axis=1)
    letters = np.where(present, np.take_along_axis(prefix, starts, axis=1) - first_letter, NO_VARIABLE)
    constants = np.where(present, tokens[rows[:, None], starts + 1], NO_VARIABLE)
    starts = np.pad(np.where(present, starts, prefix.shape[1]), ((0, 0), (0, 1)), constant_values=prefix.shape[1])
    values = tokens[rows[:, None], at]
    return Reading(well_formed, np.stack(variables, axis=1), at, values, letters, constants, starts)
