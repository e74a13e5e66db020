"""Which constant pairs and which variable positions training may use."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from aa_core.errors import InputError
from aa_core.task.config import TaskConfig


@dataclass(frozen=True)
class SplitConfig:
    """What training is allowed to see; the defaults are the paper's.

    Attributes:
        train_fraction: the paper's f, the share of ordered constant pairs in training, in (0, 1].
        one_variable_frequency: the frequency of 1-variable sequences, of each side, relative to the paper's, at
            least 0; with 0 here and for two variables, training is modular addition alone.
        two_variable_frequency: the paper's r, the frequency of 2-variable sequences relative to that of
            the paper's 1-variable sequences with the variable on one given side, at least 0.
        never_left: letters that training never puts on the left of `+`.
        never_right: letters that training never puts on the right of `+`.
        seed: seed of the draw of training pairs, at least 0.

    Raises:
        InputError: a value is out of range.
    """

    train_fraction: float = 0.7
    one_variable_frequency: float = 1.0
    two_variable_frequency: float = 1.0
    never_left: str = "kl"
    never_right: str = "ab"
    seed: int = 42

    def __post_init__(self) -> None:
        if not 0 < self.train_fraction <= 1:
            raise InputError(f"train_fraction is {self.train_fraction}, expected 0 < f <= 1")
        for name in ("one_variable_frequency", "two_variable_frequency"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}, expected at least 0 and finite")
        if self.seed < 0:  # random.Random takes the absolute value, so -1 would be another name of 1
            raise InputError(f"the split's seed is {self.seed}, expected at least 0")


@dataclass(frozen=True)
class Split:
    """A task with its training pairs drawn: `random.Random(seed).sample` over all pairs in row-major order,
    as in the paper's code.

    Raises:
        InputError: no training pair is left, or a restriction leaves fewer than two letters for a side.
    """

    task: TaskConfig
    config: SplitConfig

    def __post_init__(self) -> None:
        if self.n_train_pairs < 1:
            raise InputError(
                f"train_fraction {self.config.train_fraction} leaves no training pair of {self.task.modulus**2}"
            )
        for side in (0, 1):
            if len(self.allowed_variables(side)) < 2:
                raise InputError("never_left and never_right must leave at least two letters for each side")

    @property
    def n_train_pairs(self) -> int:
        """Number of training pairs, `floor(f * modulus**2)`."""
        return math.floor(self.config.train_fraction * self.task.modulus * self.task.modulus)

    @cached_property
    def seen(self) -> Bool[np.ndarray, "modulus modulus"]:
        """`seen[n1, n2]`: the ordered pair is in training."""
        m = self.task.modulus
        pairs = [(left, right) for left in range(m) for right in range(m)]
        chosen = random.Random(self.config.seed).sample(pairs, self.n_train_pairs)
        seen = np.zeros((m, m), dtype=bool)
        seen[tuple(np.array(chosen).T)] = True
        return seen

    @cached_property
    def seen_pairs(self) -> Int[np.ndarray, "pairs 2"]:
        """Training pairs in row-major order."""
        return np.argwhere(self.seen)

    @cached_property
    def held_out_pairs(self) -> Int[np.ndarray, "pairs 2"]:
        """Pairs that training never shows in any kind of sequence, in row-major order."""
        return np.argwhere(~self.seen)

    def restricted_variables(self, side: int) -> Int[np.ndarray, " letters"]:
        """Indices of the letters that training never puts on `side` (0 left, 1 right)."""
        return self._restricted[side]

    def allowed_variables(self, side: int) -> Int[np.ndarray, " letters"]:
        """Indices of the letters that training puts on `side` (0 left, 1 right)."""
        return self._allowed[side]

    @cached_property
    def _restricted(self) -> tuple[Int[np.ndarray, " left"], Int[np.ndarray, " right"]]:
        left, right = (
            np.array(sorted({self.task.variable_index(name) for name in names}), dtype=np.int64)
            for names in (self.config.never_left, self.config.never_right)
        )
        return left, right

    @cached_property
    def _allowed(self) -> tuple[Int[np.ndarray, " left"], Int[np.ndarray, " right"]]:
        left, right = (np.setdiff1d(np.arange(self.task.n_variables), letters) for letters in self._restricted)
        return left, right
