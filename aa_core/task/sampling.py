"""The training distribution and the nine evaluation pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Bool, Int

from aa_core.errors import InputError
from aa_core.task.config import TaskConfig
from aa_core.task.sequences import NO_VARIABLE, Sequences, draw_sequences
from aa_core.task.split import Split


class Kind(StrEnum):
    """Where the variables stand in `left + right`."""

    ZERO = "0-var"
    LEFT = "1L"
    RIGHT = "1R"
    TWO = "2-var"


KINDS = tuple(Kind)


def training_batch(split: Split, seed: int, index: int, size: int) -> Sequences:
    """Batch number `index` of a training run: a pure function of its arguments, so a resumed run sees the same data.

    Kinds 0-var, 1L, 1R and 2-var have the weights `n_variables : allowed left : allowed right : r * allowed left`
    (12 : 10 : 10 : 10 r in the paper). Pairs are uniform over the training pairs, letters uniform over those
    allowed on their side, the number of assignments uniform on `1 .. max_assignments` (a 2-variable draw of 1
    becomes 2).
    """
    rng = np.random.default_rng(np.random.Philox(key=np.array([seed, index], dtype=np.uint64)))
    left, right = split.allowed_variables(0), split.allowed_variables(1)
    weights = np.array([split.task.n_variables, len(left), len(right), len(left) * split.config.two_variable_frequency])
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


@dataclass(frozen=True)
class Pool:
    """One of the paper's evaluation pools.

    Attributes:
        name: such as `2-var/held-out`.
        kinds: kinds of its sequences, in equal shares.
        held_out: whether its pairs are the ones that training never shows.
        restricted: how many operand letters stand where training never puts them.
    """

    name: str
    kinds: tuple[Kind, ...]
    held_out: bool = False
    restricted: int = 0


POOLS: Mapping[str, Pool] = {
    pool.name: pool
    for pool in (
        Pool("0-var/seen", (Kind.ZERO,)),
        Pool("0-var/held-out", (Kind.ZERO,), held_out=True),
        Pool("1-var/seen", (Kind.LEFT, Kind.RIGHT)),
        Pool("1-var/held-out", (Kind.LEFT, Kind.RIGHT), held_out=True),
        Pool("1-var/restricted", (Kind.LEFT, Kind.RIGHT), restricted=1),
        Pool("2-var/seen", (Kind.TWO,)),
        Pool("2-var/held-out", (Kind.TWO,), held_out=True),
        Pool("2-var/one-restricted", (Kind.TWO,), restricted=1),
        Pool("2-var/both-restricted", (Kind.TWO,), restricted=2),
    )
}


def operand_letters(split: Split, kind: Kind, restricted: int) -> Int[np.ndarray, "choices 2"]:
    """Every choice of operand letters of a kind with `restricted` of them in a position training never shows."""
    left, right = ([NO_VARIABLE], [NO_VARIABLE])
    letters = list(range(split.task.n_variables))
    if kind in (Kind.LEFT, Kind.TWO):
        left = letters
    if kind in (Kind.RIGHT, Kind.TWO):
        right = letters
    never = [set(split.restricted_variables(side).tolist()) for side in (0, 1)]
    choices = [
        (a, b)
        for a in left
        for b in right
        if (a != b or a == NO_VARIABLE) and (a in never[0]) + (b in never[1]) == restricted
    ]
    return np.array(choices, dtype=np.int64).reshape(-1, 2)


def pool_sequences(split: Split, pool: Pool, n: int, seed: int) -> Sequences | None:
    """`n` sequences of a pool, or None where the split has none (no held-out pair, no restricted letter)."""
    rng = np.random.default_rng(np.random.Philox(key=np.array([seed, list(POOLS).index(pool.name)], dtype=np.uint64)))
    pairs = split.held_out_pairs if pool.held_out else split.seen_pairs
    choices = [operand_letters(split, kind, pool.restricted) for kind in pool.kinds]
    choices = [choice for choice in choices if len(choice)]
    if not len(pairs) or not choices:
        return None
    variables = np.empty((n, 2), dtype=np.int64)
    for part, choice in enumerate(choices):
        rows = slice(part, None, len(choices))
        variables[rows] = choice[rng.integers(0, len(choice), len(variables[rows]))]
    values = pairs[rng.integers(0, len(pairs), n)]
    return draw_sequences(split.task, rng, values, variables, draw_n_assignments(split.task, rng, variables))


def full_prefix_sequences(
    split: Split, kind: Kind, n: int, seed: int, variables: Int[np.ndarray, "n 2"] | None = None
) -> Sequences:
    """`n` training-law sequences of a kind with the most assignments and all values distinct.

    With every assignment present, a model that adds but binds at random is right in `1/max_assignments` of the
    1-variable sequences and `1/C(max_assignments, 2)` of the 2-variable ones (.167 and .067 in the paper's task);
    on the pools the same model scores about .4 and .33.

    Args:
        split: training pairs and allowed letters.
        kind: kind of all sequences.
        n: how many.
        seed: seed of the draw.
        variables: operand letters to use instead of drawing allowed ones.

    Raises:
        InputError: there are too few constants for that, or no training pair of different values.
    """
    if split.task.modulus < split.task.max_assignments + 2:
        raise InputError(
            f"modulus is {split.task.modulus}, expected at least max_assignments + 2 "
            f"({split.task.max_assignments + 2}) for sequences whose values all differ"
        )
    rng = np.random.default_rng(np.random.Philox(key=np.array([seed, 1000 + KINDS.index(kind)], dtype=np.uint64)))
    has = np.array([kind in (Kind.LEFT, Kind.TWO), kind in (Kind.RIGHT, Kind.TWO)])
    drawn = draw_variables(
        rng, np.full(n, has[0]), np.full(n, has[1]), split.allowed_variables(0), split.allowed_variables(1)
    )
    pairs = split.seen_pairs[split.seen_pairs[:, 0] != split.seen_pairs[:, 1]]
    if not len(pairs):
        raise InputError("no training pair has two different values: raise train_fraction or change the split's seed")
    values = pairs[rng.integers(0, len(pairs), n)]
    return draw_sequences(
        split.task,
        rng,
        values,
        drawn if variables is None else variables,
        np.full(n, split.task.max_assignments),
        distinct_values=True,
    )
