"""Two variables whose assignments are alone in the prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Int

from aa_core.certificates.domain import Domain, pairs_of_codes, write_sums
from aa_core.task.config import TaskConfig
from aa_core.task.sequences import Sequences


@dataclass(frozen=True)
class TwoVariables(Domain):
    """All ordered pairs of letters and of values, and both orders and all places of the assignments."""

    name = "2-var-two-assignments"

    task: TaskConfig

    @cached_property
    def _placements(self) -> Int[np.ndarray, "placements 2"]:
        """Positions of the first and of the second assignment: two blocks of two tokens that do not overlap."""
        first_and_second = np.array(list(combinations(range(self.task.prefix_length - 2), 2)))
        return first_and_second + np.array([0, 1])

    @property
    def _shape(self) -> tuple[int, int, int, int, int]:
        """Placement, whether the right operand is assigned first, left letter, right letter among the rest, pair."""
        n = self.task.n_variables
        return len(self._placements), 2, n, n - 1, self.task.modulus**2

    @property
    def size(self) -> int:
        """Placements x 2 orders x ordered pairs of letters x pairs."""
        return int(np.prod(self._shape))

    @property
    def statement(self) -> str:
        """What is asked."""
        return "every sum of two different variables with their two assignments alone, in either order, at any places"

    @property
    def parameters(self) -> Mapping[str, str]:
        """None."""
        return {}

    def sequences(self, indices: Int[np.ndarray, " n"]) -> Sequences:
        """Pairs vary fastest, then right letters, left letters, orders and placements."""
        task = self.task
        placement, right_first, left, other, pair = np.unravel_index(indices, self._shape)
        places = self._placements[placement]
        places = np.where(right_first[:, None] == 1, places[:, ::-1], places)
        variables = np.stack([left, other + (other >= left)], axis=1)
        prefix = np.full((len(indices), task.prefix_length), task.pad_token)
        return write_sums(task, prefix, pairs_of_codes(task, pair), variables, places)
