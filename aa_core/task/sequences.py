"""Token sequences from operands, drawn vectorised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from aa_core.task.config import TaskConfig

NO_VARIABLE = -1


@dataclass(frozen=True)
class Sequences:
    """Sequences with what is needed to read them.

    Attributes:
        tokens: one row a sequence.
        answers: `(values.sum(1)) % modulus`.
        values: the two operand values, left and right.
        variables: the operands' variable indices, `NO_VARIABLE` where the operand is a constant.
        sources: positions of the two constants that the answer is the sum of (for a constant operand its own place).
    """

    tokens: Int[np.ndarray, "n n_ctx"]
    answers: Int[np.ndarray, " n"]
    values: Int[np.ndarray, "n 2"]
    variables: Int[np.ndarray, "n 2"]
    sources: Int[np.ndarray, "n 2"]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: slice | np.ndarray) -> Sequences:
        return Sequences(
            self.tokens[index], self.answers[index], self.values[index], self.variables[index], self.sources[index]
        )


def concatenate(parts: list[Sequences]) -> Sequences:
    """All sequences of `parts` in order."""
    fields = ("tokens", "answers", "values", "variables", "sources")
    return Sequences(*(np.concatenate([getattr(part, field) for part in parts]) for field in fields))


def draw_sequences(
    task: TaskConfig,
    rng: np.random.Generator,
    values: Int[np.ndarray, "n 2"],
    variables: Int[np.ndarray, "n 2"],
    n_assignments: Int[np.ndarray, " n"],
    *,
    distinct_values: bool = False,
) -> Sequences:
    """Draw everything that the operands leave open: distractors, order and gaps, as the paper does.

    Distractor letters are distinct and not operands, their values uniform; the order of assignments is uniform;
    each leftover PAD picks one of the `n_assignments + 1` gaps uniformly.

    Sorts are stable, so that the same draws give the same sequences on every processor.

    Args:
        task: sizes.
        rng: source of the draws.
        values: operand values in `0 .. modulus-1`.
        variables: operand letters, `NO_VARIABLE` for a constant operand.
        n_assignments: assignments in the prefix, at least the number of variable operands.
        distinct_values: make all values of a sequence differ (operands and distractors), so that no answer
            comes out right through the wrong assignment. The two operand values must then differ.
    """
    n = len(values)
    slots = np.arange(task.max_assignments)
    is_variable = variables != NO_VARIABLE

    # Operand letters get the smallest keys, so they take the first slots; random letters fill the rest.
    keys = rng.random((n, task.n_variables), dtype=np.float32)
    left_rows, right_rows = np.flatnonzero(is_variable[:, 0]), np.flatnonzero(is_variable[:, 1])
    keys[left_rows, variables[left_rows, 0]] = -2
    keys[right_rows, variables[right_rows, 1]] = -1
    letters = keys.argsort(axis=1, kind="stable")[:, : task.max_assignments]

    operand_slot = np.stack([np.zeros(n, np.int64), is_variable[:, 0].astype(np.int64)], axis=1)
    if distinct_values:
        constants = _distinct_from(task, rng, values)
    else:
        constants = rng.integers(0, task.modulus, (n, task.max_assignments))
    for side, rows in enumerate((left_rows, right_rows)):
        constants[rows, operand_slot[rows, side]] = values[rows, side]

    active = slots < n_assignments[:, None]
    order_keys = rng.random((n, task.max_assignments), dtype=np.float32)
    order_keys[~active] = 2
    order = order_keys.argsort(axis=1, kind="stable")  # order[i, j]: the slot written as the j-th assignment

    n_pads = task.prefix_length - 2 * n_assignments
    n_gaps = task.max_assignments + 2  # the last one takes the draws that are not PADs
    gaps = (rng.random((n, task.prefix_length), dtype=np.float32) * (n_assignments[:, None] + 1)).astype(np.int64)
    gaps[np.arange(task.prefix_length) >= n_pads[:, None]] = n_gaps - 1
    gaps += n_gaps * np.arange(n)[:, None]  # one count over all rows is far faster than comparing gaps with slots
    pads_in_gap = np.bincount(gaps.ravel(), minlength=n * n_gaps).reshape(n, n_gaps)
    pads_before = pads_in_gap[:, : task.max_assignments].cumsum(axis=1)
    starts = pads_before + 2 * slots

    tokens = np.full((n, task.n_ctx), task.pad_token, dtype=np.int64)
    rows, column = np.nonzero(active)
    at = starts[rows, column]
    slot = order[rows, column]
    tokens[rows, at] = task.first_variable_token + letters[rows, slot]
    tokens[rows, at + 1] = constants[rows, slot]
    tokens[:, task.plus_position] = task.plus_token
    tokens[:, task.equals_position] = task.equals_token
    ends = np.array([task.left_position, task.right_position])
    tokens[:, ends] = np.where(is_variable, task.first_variable_token + variables, values)

    place = order.argsort(axis=1, kind="stable")  # inverse permutation
    written_at = np.take_along_axis(starts, np.take_along_axis(place, operand_slot, axis=1), axis=1) + 1
    sources = np.where(is_variable, written_at, ends)
    return Sequences(tokens, values.sum(axis=1) % task.modulus, values, variables, sources)


def _distinct_from(
    task: TaskConfig, rng: np.random.Generator, values: Int[np.ndarray, "n 2"]
) -> Int[np.ndarray, "n slots"]:
    """Values for every slot, pairwise distinct and different from the operand values of their row."""
    keys = rng.random((len(values), task.modulus), dtype=np.float32)
    np.put_along_axis(keys, values, np.float32(2), axis=1)
    return keys.argsort(axis=1, kind="stable")[:, : task.max_assignments]
