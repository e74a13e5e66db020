"""A finite domain of sequences, each a pure function of its index, so that none has to be stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Int

from aa_core.task.config import TaskConfig
from aa_core.task.sequences import NO_VARIABLE, Sequences


class Axis(NamedTuple):
    """A way to divide sequences: the label of each is `labels[codes]`."""

    labels: tuple[str, ...]
    codes: Int[np.ndarray, " n"]


class Domain(ABC):
    """Sequences numbered `0 .. size-1`, all different.

    Attributes:
        name: what `--domain` calls it.
        task: sizes of the task.
    """

    name: ClassVar[str]
    task: TaskConfig

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of sequences."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """What the sequences are, in words."""

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, str]:
        """What, besides the name, the task and the split, defines the domain."""

    @abstractmethod
    def sequences(self, indices: Int[np.ndarray, " n"]) -> Sequences:
        """The sequences of some indices, in that order."""

    def axes(self, indices: Int[np.ndarray, " n"]) -> Mapping[str, Axis]:
        """Divisions that only this domain has."""
        return {}


def pairs_of_codes(task: TaskConfig, codes: Int[np.ndarray, " n"]) -> Int[np.ndarray, "n 2"]:
    """The ordered pairs of constants at places `codes` of the row-major order."""
    return np.stack(np.divmod(codes, task.modulus), axis=1)


def write_sums(
    task: TaskConfig,
    prefix: Int[np.ndarray, "n prefix_length"],
    values: Int[np.ndarray, "n 2"],
    variables: Int[np.ndarray, "n 2"],
    places: Int[np.ndarray, "n 2"],
) -> Sequences:
    """Sequences from prefixes without the operands' own assignments, which are written over them.

    Args:
        task: sizes.
        prefix: tokens before `+`.
        values: operand values, left and right.
        variables: operand letters, `NO_VARIABLE` for a constant operand.
        places: position of each operand's assignment; of no meaning for a constant operand.
    """
    n = len(prefix)
    tokens = np.empty((n, task.n_ctx), dtype=np.int64)
    tokens[:, : task.prefix_length] = prefix
    ends = np.array([task.left_position, task.right_position])
    is_variable = variables != NO_VARIABLE
    letters = task.first_variable_token + variables
    tokens[:, ends] = np.where(is_variable, letters, values)
    tokens[:, task.plus_position] = task.plus_token
    tokens[:, task.equals_position] = task.equals_token
    rows, side = np.nonzero(is_variable)
    at = places[rows, side]
    tokens[rows, at] = letters[rows, side]
    tokens[rows, at + 1] = values[rows, side]
    return Sequences(
        tokens, values.sum(axis=1) % task.modulus, values, variables, np.where(is_variable, places + 1, ends)
    )
