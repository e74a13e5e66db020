"""One sequence with one of its distractors changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from aa_core.certificates.domain import Axis, Domain
from aa_core.task.config import TaskConfig
from aa_core.task.sequences import Sequences

CHANGES = ("value", "letter", "letter and value")


@dataclass(frozen=True, eq=False)
class DistractorChanges(Domain):
    """Every other letter that the sequence does not use and every value, for each distractor in turn.

    Attributes:
        task: sizes.
        sequence: the sequence, one row.
        text: the sequence as people write it.
    """

    name = "distractor-changes"

    task: TaskConfig
    sequence: Sequences
    text: str

    @property
    def _places(self) -> Int[np.ndarray, " distractors"]:
        """Positions of the distractors' letters."""
        prefix = self.sequence.tokens[0, : self.task.prefix_length]
        at = np.flatnonzero(prefix >= self.task.first_variable_token)
        return np.setdiff1d(at, self.sequence.sources[0] - 1)

    @property
    def _free_letters(self) -> Int[np.ndarray, " letters"]:
        """Tokens of the letters that the sequence does not assign."""
        letters = np.arange(self.task.first_variable_token, self.task.d_vocab)
        return np.setdiff1d(letters, self.sequence.tokens[0])

    @property
    def _changes(self) -> int:
        """Changes of one distractor: its own or a free letter, any value, but not both as they are."""
        return (1 + len(self._free_letters)) * self.task.modulus - 1

    @property
    def size(self) -> int:
        """Distractors x changes of one."""
        return len(self._places) * self._changes

    @property
    def statement(self) -> str:
        """What is asked."""
        return f"every sequence that differs from {self.text!r} in the letter, the value or both of one distractor"

    @property
    def parameters(self) -> Mapping[str, str]:
        """The sequence."""
        return {"sequence": self.text}

    def sequences(self, indices: Int[np.ndarray, " n"]) -> Sequences:
        """Values vary fastest, then letters (the distractor's own first) and distractors."""
        n = len(indices)
        place, letter, value = self._changed(indices)
        tokens = np.repeat(self.sequence.tokens, n, axis=0)
        rows = np.flatnonzero(letter)
        tokens[rows, place[rows]] = self._free_letters[letter[rows] - 1]
        tokens[np.arange(n), place + 1] = value
        base = self.sequence
        same = (np.repeat(part, n, axis=0) for part in (base.answers, base.values, base.variables, base.sources))
        return Sequences(tokens, *same)

    def axes(self, indices: Int[np.ndarray, " n"]) -> Mapping[str, Axis]:
        """The place of the distractor, and what is changed."""
        place, letter, value = self._changed(indices)
        new_value = value != self.sequence.tokens[0, place + 1]
        positions = tuple(map(str, range(self.task.prefix_length)))
        return {
            "distractor at": Axis(positions, place),
            "change": Axis(CHANGES, np.where(letter > 0, 1 + new_value, 0)),
        }

    def _changed(self, indices: Int[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position of the distractor, its letter (0 its own, k the k-th free one), its value."""
        distractor, change = np.divmod(indices, self._changes)
        place = self._places[distractor]
        change = change + (
            change >= self.sequence.tokens[0, place + 1]
        )  # its own letter with its own value is left out
        return place, *np.divmod(change, self.task.modulus)
