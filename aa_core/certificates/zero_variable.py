"""Sums of two constants after a fixed prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from aa_core.certificates.domain import Domain, write_sums
from aa_core.task.config import TaskConfig
from aa_core.task.sequences import NO_VARIABLE, Sequences


@dataclass(frozen=True, eq=False)
class ZeroVariable(Domain):
    """Every chosen ordered pair of constants once, after one prefix.

    Attributes:
        task: sizes.
        prefix: tokens before `+`.
        prefix_text: the prefix as people write it, empty for PADs alone.
        pairs: `all`, `seen` or `held-out`.
        chosen: those pairs.
    """

    name = "0-var"

    task: TaskConfig
    prefix: tuple[int, ...]
    prefix_text: str
    pairs: str
    chosen: Int[np.ndarray, "n 2"]

    @property
    def size(self) -> int:
        """Number of pairs."""
        return len(self.chosen)

    @property
    def statement(self) -> str:
        """What is asked."""
        prefix = f"the prefix {self.prefix_text!r}" if self.prefix_text else "a prefix of PADs alone"
        which = {"all": "ordered", "seen": "ordered training", "held-out": "ordered held-out"}[self.pairs]
        return f"the sum of every {which} pair of constants after {prefix}"

    @property
    def parameters(self) -> Mapping[str, str]:
        """The prefix and the choice of pairs."""
        return {"prefix": self.prefix_text, "pairs": self.pairs}

    def sequences(self, indices: Int[np.ndarray, " n"]) -> Sequences:
        """In the order of the pairs."""
        none = np.full((len(indices), 2), NO_VARIABLE)
        prefix = np.broadcast_to(np.array(self.prefix), (len(indices), len(self.prefix)))
        return write_sums(self.task, prefix, self.chosen[indices], none, none)
