"""One problem as a person writes it, as values, and as tokens.

The text is `c=17, b=42, b+19=?`. Its grammar, with free white space between the parts:

    problem    = { pads assignment "," } pads operand "+" operand [ "=" ] [ "?" ]
    assignment = variable "=" constant
    operand    = variable | constant
    pads       = { "_" }

Every `_` is a PAD at its place. Text that has any must have as many as fill the prefix; text without them has the
default layout. Constants have no sign and no leading zero.

Two things that training never shows are accepted, since the model can be asked about them: a sum without any
assignment, and the same variable on both sides.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from string import whitespace

import numpy as np
from jaxtyping import Int

from aa_core.errors import InputError
from aa_core.task.config import TaskConfig
from aa_core.task.sequences import NO_VARIABLE, Sequences

PAD_SIGN = "_"
EXAMPLE = "a=1, b=0, b+1=?"


@dataclass(frozen=True)
class Problem:
    """Assignments, then a sum. Nothing is checked before a method is given the task that the problem is for.

    `parse_problem`, `problem_from_tokens` and the strategies give problems in normal form: `gaps` is None wherever it
    says the same. These are equal if and only if their tokens are.

    Attributes:
        assignments: variable and constant, in the order of the sequence.
        left: variable or constant on the left of `+`.
        right: variable or constant on the right of `+`.
        gaps: PADs before each assignment and, last, before `+`; None for the default layout.
    """

    assignments: tuple[tuple[str, int], ...]
    left: str | int
    right: str | int
    gaps: tuple[int, ...] | None = None

    def check(self, task: TaskConfig) -> None:
        """Make sure that the problem is one of this task.

        Raises:
            InputError: it has too many assignments, assigns a variable twice, uses one that it does not assign or
                that the task does not have, a constant is out of range, or the PADs do not fill the prefix.
        """
        n = len(self.assignments)
        if n > task.max_assignments:
            raise InputError(f"{n} assignments, expected at most {task.max_assignments}")
        assigned: set[str] = set()
        for name, value in self.assignments:
            task.variable_index(name)
            _check_constant(task, value)
            if name in assigned:
                raise InputError(f"variable {name!r} is assigned twice, expected at most once")
            assigned.add(name)
        for operand in (self.left, self.right):
            if not isinstance(operand, str):
                _check_constant(task, operand)
            elif operand not in assigned:
                task.variable_index(operand)
                raise InputError(f"variable {operand!r} has no value: add an assignment such as {operand}=0")
        if self.gaps is not None:
            n_pads = task.prefix_length - 2 * n
            if len(self.gaps) != n + 1 or min(self.gaps) < 0 or sum(self.gaps) != n_pads:
                raise InputError(
                    f"{sum(self.gaps)} PADs ({PAD_SIGN}) in {len(self.gaps)} gaps, expected {n_pads} in {n + 1}, "
                    "or none at all for the default layout"
                )

    def layout(self, task: TaskConfig) -> tuple[int, ...]:
        """PADs before each assignment and, last, before `+`."""
        return default_layout(task, len(self.assignments)) if self.gaps is None else self.gaps

    def normal(self, task: TaskConfig) -> Problem:
        """The same sequence in normal form, with None for the default layout.

        Raises:
            InputError: see `check`.
        """
        self.check(task)
        default = default_layout(task, len(self.assignments))
        return replace(self, gaps=None) if self.gaps == default else self

    def operand_values(self, task: TaskConfig) -> tuple[int, int]:
        """Values of the left and the right operand.

        Raises:
            InputError: see `check`.
        """
        self.check(task)
        values = dict(self.assignments)
        left, right = (values[operand] if isinstance(operand, str) else operand for operand in (self.left, self.right))
        return left, right

    def operand_variables(self, task: TaskConfig) -> tuple[int, int]:
        """Variable indices of the left and the right operand, `NO_VARIABLE` for a constant.

        Raises:
            InputError: see `check`.
        """
        self.check(task)
        left, right = (
            task.variable_index(operand) if isinstance(operand, str) else NO_VARIABLE
            for operand in (self.left, self.right)
        )
        return left, right

    def answer(self, task: TaskConfig) -> int:
        """The sum of the operands' values, modulo `modulus`.

        Raises:
            InputError: see `check`.
        """
        return sum(self.operand_values(task)) % task.modulus

    def sources(self, task: TaskConfig) -> tuple[int, int]:
        """Positions of the two constants that the answer is the sum of (for a constant operand its own place).

        Raises:
            InputError: see `check`.
        """
        self.check(task)
        value_at = {name: start + 1 for (name, _), start in zip(self.assignments, self._starts(task), strict=True)}
        left = value_at[self.left] if isinstance(self.left, str) else task.left_position
        right = value_at[self.right] if isinstance(self.right, str) else task.right_position
        return left, right

    def tokens(self, task: TaskConfig) -> Int[np.ndarray, " n_ctx"]:
        """The sequence, int64.

        Raises:
            InputError: see `check`.
        """
        self.check(task)
        tokens = np.full(task.n_ctx, task.pad_token, dtype=np.int64)
        for (name, value), start in zip(self.assignments, self._starts(task), strict=True):
            tokens[start : start + 2] = _token(task, name), value
        tokens[task.plus_position :] = (
            task.plus_token,
            _token(task, self.left),
            _token(task, self.right),
            task.equals_token,
        )
        return tokens

    def text(self, task: TaskConfig, *, show_pads: bool = False) -> str:
        """The problem as `parse_problem` reads it.

        Args:
            task: sizes.
            show_pads: write the PADs also where the layout is the default one.

        Raises:
            InputError: see `check`.
        """
        self.check(task)
        parts = [f"{name}={value}" for name, value in self.assignments] + [f"{self.left}+{self.right}=?"]
        layout = self.layout(task)
        if show_pads or layout != default_layout(task, len(self.assignments)):
            parts = [f"{PAD_SIGN} " * pads + part for pads, part in zip(layout, parts, strict=True)]
        return ", ".join(parts)

    def _starts(self, task: TaskConfig) -> list[int]:
        """Position of each assignment's variable."""
        pads_before = accumulate(self.layout(task)[:-1])
        return [pads + 2 * index for index, pads in enumerate(pads_before)]


def default_layout(task: TaskConfig, n_assignments: int) -> tuple[int, ...]:
    """PADs spread as evenly as possible over the `n_assignments + 1` gaps; the first gaps get the remainder."""
    each, remainder = divmod(task.prefix_length - 2 * n_assignments, n_assignments + 1)
    return tuple(each + (gap < remainder) for gap in range(n_assignments + 1))


def parse_problem(task: TaskConfig, text: str) -> Problem:
    """Read a problem such as `c=17, b=42, b+19=?`; the module's docstring has the grammar.

    Raises:
        InputError: the text does not follow the grammar, or see `Problem.check`.
    """
    if not text.strip():
        raise InputError(f"the problem is empty, expected text such as {EXAMPLE!r}")
    gaps, parts = zip(*(_leading_pads(part) for part in text.split(",")), strict=True)
    assignments = tuple(_parse_assignment(task, part) for part in parts[:-1])
    left, right = _parse_sum(task, parts[-1])
    return Problem(assignments, left, right, gaps if any(gaps) else None).normal(task)


def problem_from_tokens(task: TaskConfig, tokens: Int[np.ndarray, " n_ctx"] | Sequence[int]) -> Problem:
    """The problem that a sequence shows; `Problem.tokens` gives the sequence back.

    Raises:
        InputError: the tokens are not a sequence of this task.
    """
    row = np.asarray(tokens)
    if row.shape != (task.n_ctx,) or not np.issubdtype(row.dtype, np.integer):
        raise InputError(f"tokens are {row.dtype} of shape {row.shape}, expected integers of shape ({task.n_ctx},)")
    for position, token in enumerate(row):
        if not 0 <= token < task.d_vocab:
            raise InputError(f"token {token} at position {position} is out of range, expected 0 to {task.d_vocab - 1}")
    vocabulary = [*range(task.modulus), "+", "=", PAD_SIGN, *task.variables]
    *prefix, plus, left, right, equals = (vocabulary[token] for token in row)
    if plus != "+" or equals != "=" or not (_is_operand(left) and _is_operand(right)):
        raise InputError(f"the tokens end with `{plus} {left} {right} {equals}`, expected `+ operand operand =`")

    assignments: list[tuple[str, int]] = []
    gaps = [0]
    symbols = iter(prefix)
    for symbol in symbols:
        if symbol == PAD_SIGN:
            gaps[-1] += 1
            continue
        value = next(symbols, None)
        if not (isinstance(symbol, str) and symbol.isalpha() and isinstance(value, int)):
            raise InputError(f"the prefix has `{symbol} {value}`, expected a PAD or a variable and its constant")
        assignments.append((symbol, value))
        gaps.append(0)
    return Problem(tuple(assignments), left, right, tuple(gaps)).normal(task)


def sequences_from_problems(task: TaskConfig, problems: Sequence[Problem]) -> Sequences:
    """The problems as rows of `Sequences`, in order.

    Raises:
        InputError: see `Problem.check`.
    """
    n = len(problems)
    return Sequences(
        tokens=np.array([problem.tokens(task) for problem in problems], dtype=np.int64).reshape(n, task.n_ctx),
        answers=np.array([problem.answer(task) for problem in problems], dtype=np.int64),
        values=np.array([problem.operand_values(task) for problem in problems], dtype=np.int64).reshape(n, 2),
        variables=np.array([problem.operand_variables(task) for problem in problems], dtype=np.int64).reshape(n, 2),
        sources=np.array([problem.sources(task) for problem in problems], dtype=np.int64).reshape(n, 2),
    )


def _leading_pads(part: str) -> tuple[int, str]:
    rest = part.lstrip(PAD_SIGN + whitespace)
    return part[: len(part) - len(rest)].count(PAD_SIGN), rest.strip()


def _parse_assignment(task: TaskConfig, part: str) -> tuple[str, int]:
    name, equals, value = (piece.strip() for piece in part.partition("="))
    if not equals:
        raise InputError(f"cannot read the assignment {reprlib.repr(part)}, expected such as 'a=1'")
    return _parse_variable(task, name), _parse_constant(task, value)


def _parse_sum(task: TaskConfig, part: str) -> tuple[str | int, str | int]:
    operands = part.removesuffix("?").rstrip().removesuffix("=").split("+")
    if len(operands) != 2:
        raise InputError(f"cannot read the sum {reprlib.repr(part)}, expected two operands with one '+' between them")
    left, right = (
        _parse_variable(task, operand) if operand[:1].isalpha() else _parse_constant(task, operand)
        for operand in map(str.strip, operands)
    )
    return left, right


def _parse_variable(task: TaskConfig, text: str) -> str:
    if len(text) != 1:
        raise InputError(
            f"cannot read the variable {reprlib.repr(text)}, expected one letter; a comma ends every assignment"
        )
    task.variable_index(text)
    return text


def _parse_constant(task: TaskConfig, text: str) -> int:
    constants = {str(value): value for value in range(task.modulus)}
    if text not in constants:
        raise InputError(f"cannot read the constant {reprlib.repr(text)}, expected 0 to {task.modulus - 1}")
    return constants[text]


def _check_constant(task: TaskConfig, value: int) -> None:
    if not 0 <= value < task.modulus:
        raise InputError(f"constant {value} is out of range, expected 0 to {task.modulus - 1}")


def _is_operand(symbol: str | int) -> bool:
    return isinstance(symbol, int) or symbol.isalpha()


def _token(task: TaskConfig, symbol: str | int) -> int:
    return task.first_variable_token + task.variable_index(symbol) if isinstance(symbol, str) else symbol
