"""Sizes of the assign-and-add task, and the numbering of its tokens."""

from __future__ import annotations

import string
from dataclasses import dataclass

from aa_core.errors import InputError

LAST_TOKENS = 4  # `+`, left operand, right operand, `=`


@dataclass(frozen=True)
class TaskConfig:
    """Sizes of the task; the defaults are the paper's.

    Tokens are numbered constants first (`0 .. modulus-1`), then `+`, `=`, PAD, and the variables.
    A sequence is a prefix of assignments (`variable constant`, two tokens each) spread among PADs,
    then `+ left right =`; the answer is read at the last position.

    Attributes:
        modulus: number of constants, and of output classes.
        n_variables: number of variable letters, at most 26.
        max_assignments: most assignments that a prefix can hold.
        n_ctx: tokens in a sequence.

    Raises:
        InputError: the sizes do not fit together.
    """

    modulus: int = 59
    n_variables: int = 12
    max_assignments: int = 6
    n_ctx: int = 16

    def __post_init__(self) -> None:
        if self.modulus < 2:
            raise InputError(f"modulus is {self.modulus}, expected at least 2")
        if not 2 <= self.n_variables <= len(string.ascii_lowercase):
            raise InputError(f"n_variables is {self.n_variables}, expected 2 to 26")
        if not 2 <= self.max_assignments <= self.n_variables:
            raise InputError(
                f"max_assignments is {self.max_assignments}, expected 2 to n_variables ({self.n_variables}): "
                "a variable is assigned at most once"
            )
        if self.prefix_length < 2 * self.max_assignments:
            raise InputError(
                f"n_ctx is {self.n_ctx}, expected at least {2 * self.max_assignments + LAST_TOKENS} "
                f"to hold {self.max_assignments} assignments"
            )

    @property
    def prefix_length(self) -> int:
        """Positions before the final `+ left right =`."""
        return self.n_ctx - LAST_TOKENS

    @property
    def plus_token(self) -> int:
        """Token of `+`."""
        return self.modulus

    @property
    def equals_token(self) -> int:
        """Token of `=`."""
        return self.modulus + 1

    @property
    def pad_token(self) -> int:
        """Token of PAD."""
        return self.modulus + 2

    @property
    def first_variable_token(self) -> int:
        """Token of the first variable; the others follow."""
        return self.modulus + 3

    @property
    def d_vocab(self) -> int:
        """Number of tokens."""
        return self.first_variable_token + self.n_variables

    @property
    def variables(self) -> str:
        """The variable letters in token order, such as `abcdefghijkl`."""
        return string.ascii_lowercase[: self.n_variables]

    @property
    def plus_position(self) -> int:
        """Position of `+`."""
        return self.n_ctx - 4

    @property
    def left_position(self) -> int:
        """Position of the left operand."""
        return self.n_ctx - 3

    @property
    def right_position(self) -> int:
        """Position of the right operand."""
        return self.n_ctx - 2

    @property
    def equals_position(self) -> int:
        """Position of `=`, the last."""
        return self.n_ctx - 1

    def variable_index(self, name: str) -> int:
        """Index `0 .. n_variables-1` of a letter.

        Raises:
            InputError: the letter is not a variable of this task.
        """
        index = self.variables.find(name) if len(name) == 1 else -1
        if index < 0:
            raise InputError(f"unknown variable {name!r}, expected one of {', '.join(self.variables)}")
        return index
