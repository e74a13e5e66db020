"""Sequences to evaluate on: the nine pools, and full prefixes of distinct values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Int

from aa_core.errors import InputError
from aa_core.task.sequences import NO_VARIABLE, Sequences, draw_sequences
from aa_core.task.split import Split
from aa_core.task.training_data import draw_n_assignments, draw_variables


class Kind(StrEnum):
    """Where the variables stand in `left + right`."""

    ZERO = "0-var"
    LEFT = "1L"
    RIGHT = "1R"
    TWO = "2-var"


KINDS = tuple(Kind)


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
