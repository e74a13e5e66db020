"""The training distribution; what this module imports determines the data that a run sees."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from aa_core.task.config import TaskConfig
from aa_core.task.sequences import NO_VARIABLE, Sequences, draw_sequences
from aa_core.task.split import Split


def training_batch(split: Split, seed: int, index: int, size: int) -> Sequences:
    """Batch number `index` of a training run: a pure function of its arguments, so a resumed run sees the same data.

    Kinds 0-var, 1L, 1R and 2-var have the weights
    `n_variables : s * allowed left : s * allowed right : r * allowed left`, where s and r are the split's frequencies
    of one and two variables (12 : 10 : 10 : 10 r in the paper). Pairs are uniform over the training pairs, letters
    uniform over those allowed on their side, the number of assignments uniform on `1 .. max_assignments` (a 2-variable
    draw of 1 becomes 2).
    """
    rng = np.random.default_rng(np.random.Philox(key=np.array([seed, index], dtype=np.uint64)))
    left, right = split.allowed_variables(0), split.allowed_variables(1)
    one, two = split.config.one_variable_frequency, split.config.two_variable_frequency
    weights = np.array([split.task.n_variables, len(left) * one, len(right) * one, len(left) * two])
    kinds = np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(size), side="right")
    has_left = (kinds == 1) | (kinds == 3)
    has_right = (kinds == 2) | (kinds == 3)
    variables = draw_variables(rng, has_left, has_right, left, right)
    pairs = split.seen_pairs
    values = pairs[rng.integers(0, len(pairs), size)]
    return draw_sequences(split.task, rng, values, variables, draw_n_assignments(split.task, rng, variables))


def draw_variables(
    rng: np.random.Generator,
    has_left: Bool[np.ndarray, " n"],
    has_right: Bool[np.ndarray, " n"],
    left: Int[np.ndarray, " letters_left"],
    right: Int[np.ndarray, " letters_right"],
) -> Int[np.ndarray, "n 2"]:
    """Operand letters: uniform on the left, then uniform among the different ones on the right.

    Every left letter must leave another one for the right.
    """
    n = len(has_left)
    lefts = np.where(has_left, left[rng.integers(0, len(left), n)], NO_VARIABLE)
    clash = right == lefts[:, None]
    n_choices = len(right) - clash.sum(axis=1)
    pick = (rng.random(n) * n_choices).astype(np.int64)
    pick += clash.any(axis=1) & (pick >= clash.argmax(axis=1))  # step over the left letter
    return np.stack([lefts, np.where(has_right, right[np.minimum(pick, len(right) - 1)], NO_VARIABLE)], axis=1)


def draw_n_assignments(
    task: TaskConfig, rng: np.random.Generator, variables: Int[np.ndarray, "n 2"]
) -> Int[np.ndarray, " n"]:
    """Uniform on `1 .. max_assignments`, raised to 2 where both operands are variables."""
    drawn = rng.integers(1, task.max_assignments + 1, len(variables))
    return np.maximum(drawn, (variables != NO_VARIABLE).sum(axis=1))
