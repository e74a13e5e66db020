"""One variable and one constant, with the variable's assignment alone in the prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from aa_core.certificates.domain import Domain, pairs_of_codes, write_sums
from aa_core.task.config import TaskConfig
from aa_core.task.sequences import NO_VARIABLE, Sequences


@dataclass(frozen=True)
class OneVariable(Domain):
    """Both sides, all letters, all places of the assignment, all ordered pairs of operand values."""

    name = "1-var-one-assignment"

    task: TaskConfig

    @property
    def _shape(self) -> tuple[int, int, int, int]:
        """Side of the variable, letter, place, pair."""
        return 2, self.task.n_variables, self.task.prefix_length - 1, self.task.modulus**2

    @property
    def size(self) -> int:
        """2 sides x letters x places x pairs."""
        return int(np.prod(self._shape))

    @property
    def statement(self) -> str:
        """What is asked."""
        return "every sum of one variable and one constant, on either side, with one assignment at any place"

    @property
    def parameters(self) -> Mapping[str, str]:
        """None."""
        return {}

    def sequences(self, indices: Int[np.ndarray, " n"]) -> Sequences:
        """Pairs vary fastest, then places, letters and sides."""
        task, n = self.task, len(indices)
        side, letter, place, pair = np.unravel_index(indices, self._shape)
        variables = np.full((n, 2), NO_VARIABLE)
        variables[np.arange(n), side] = letter
        prefix = np.full((n, task.prefix_length), task.pad_token)
        places = np.stack([place, place], axis=1)
        return write_sums(task, prefix, pairs_of_codes(task, pair), variables, places)
