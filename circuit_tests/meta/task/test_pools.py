"""The nine evaluation pools and the full-prefix sequences."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from aa_core.errors import InputError
from aa_core.task.config import TaskConfig
from aa_core.task.sampling import KINDS, POOLS, Kind, full_prefix_sequences, operand_letters, pool_sequences
from aa_core.task.sequences import NO_VARIABLE, Sequences
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.task.sampling_law import (
    SPLITS,
    assert_law,
    assert_valid,
    assignments,
    fields,
    kind_codes,
    sequence_law,
    uniform,
)

PAPER, SMALL, TINY = (SPLITS[name] for name in ("paper", "small", "tiny"))

# Kinds, whether pairs are in training, letters in positions that training never shows.
DEFINITIONS: dict[str, tuple[set[Kind], bool, int]] = {
    "0-var/seen": ({Kind.ZERO}, True, 0),
    "0-var/held-out": ({Kind.ZERO}, False, 0),
    "1-var/seen": ({Kind.LEFT, Kind.RIGHT}, True, 0),
    "1-var/held-out": ({Kind.LEFT, Kind.RIGHT}, False, 0),
    "1-var/restricted": ({Kind.LEFT, Kind.RIGHT}, True, 1),
    "2-var/seen": ({Kind.TWO}, True, 0),
    "2-var/held-out": ({Kind.TWO}, False, 0),
    "2-var/one-restricted": ({Kind.TWO}, True, 1),
    "2-var/both-restricted": ({Kind.TWO}, True, 2),
}


def drawn(split: Split, name: str, n: int, seed: int) -> Sequences:
    sequences = pool_sequences(split, POOLS[name], n, seed)
    assert sequences is not None, f"{name} is not empty"
    assert len(sequences) == n
    return sequences


def never_shown(split: Split, letters: tuple[int, int]) -> int:
    """How many of the operand letters stand where training never puts them."""
    names = ["" if letter == NO_VARIABLE else split.task.variables[letter] for letter in letters]
    never = (split.config.never_left, split.config.never_right)
    return sum(bool(name) and name in side for name, side in zip(names, never, strict=True))


def test_pools_are_the_nine_of_the_paper() -> None:
    assert list(POOLS) == list(DEFINITIONS)
    assert [pool.name for pool in POOLS.values()] == list(POOLS)


@pytest.mark.parametrize("split_name", SPLITS)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_sequence_of_a_pool_fits_it(name: str, split_name: str) -> None:
    split = SPLITS[split_name]
    kinds, seen, n_restricted = DEFINITIONS[name]
    sequences = drawn(split, name, 1001, seed=3)
    assert_valid(split, sequences[:200])
    training_pairs = set(map(tuple, split.seen_pairs.tolist()))
    for pair, letters in zip(sequences.values.tolist(), sequences.variables.tolist(), strict=True):
        assert (tuple(pair) in training_pairs) == seen, pair
        assert letters[0] != letters[1] or letters[0] == NO_VARIABLE, letters
        assert never_shown(split, letters) == n_restricted, letters
    counts = Counter(KINDS[code] for code in kind_codes(sequences))
    assert set(counts) == kinds
    assert max(counts.values()) - min(counts.values()) <= 1, f"equal shares: {counts}"


@pytest.mark.parametrize("split_name", SPLITS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_restricted", [0, 1, 2])
def test_choices_of_letters_are_complete(split_name: str, kind: Kind, n_restricted: int) -> None:
    split = SPLITS[split_name]
    every = range(split.task.n_variables)
    left = every if kind in (Kind.LEFT, Kind.TWO) else [NO_VARIABLE]
    right = every if kind in (Kind.RIGHT, Kind.TWO) else [NO_VARIABLE]
    pairs = ((a, b) for a, b in product(left, right) if kind != Kind.TWO or a != b)
    expected = [pair for pair in pairs if never_shown(split, pair) == n_restricted]
    assert [tuple(pair) for pair in operand_letters(split, kind, n_restricted).tolist()] == expected


@pytest.mark.parametrize(
    ("name", "n_choices"),
    [
        ("1-var/seen", 20),  # ten on each side
        ("1-var/held-out", 20),
        ("1-var/restricted", 4),  # k+, l+, +a, +b
        ("2-var/seen", 10 * 10 - 8),  # both in c..j happens in 8 of 100 with equal letters
        ("2-var/held-out", 10 * 10 - 8),
        ("2-var/one-restricted", 2 * 9 + 9 * 2),
        ("2-var/both-restricted", 4),  # k+a, k+b, l+a, l+b
    ],
)
def test_letters_of_a_pool_are_uniform(name: str, n_choices: int) -> None:
    letters = list(map(tuple, drawn(PAPER, name, 8000, seed=1).variables.tolist()))
    assert len(set(letters)) == n_choices, "every choice of letters occurs"
    assert_law(letters, uniform(set(letters)), f"letters of {name}")


@pytest.mark.parametrize("name", DEFINITIONS)
def test_pools_have_exactly_their_law(name: str) -> None:
    """As in training for what the pool leaves open; kinds in equal shares, letters uniform over what is left."""
    kinds, seen, n_restricted = DEFINITIONS[name]
    operands: dict[tuple[int, int], float] = {}
    for kind in kinds:
        choices = [(int(a), int(b)) for a, b in operand_letters(TINY, kind, n_restricted)]
        operands |= dict.fromkeys(choices, 1 / len(kinds) / len(choices))
    pairs = [pair for pair in product(range(2), repeat=2) if bool(TINY.seen[pair]) == seen]
    law = sequence_law(TINY.task, pairs, operands)
    assert_law(map(tuple, drawn(TINY, name, 20_000, seed=2).tokens.tolist()), law, name)


def empty_pools(split: Split) -> set[str]:
    return {name for name, pool in POOLS.items() if pool_sequences(split, pool, 10, seed=0) is None}


def test_pools_that_a_split_leaves_empty() -> None:
    held_out = {"0-var/held-out", "1-var/held-out", "2-var/held-out"}
    restricted = {"1-var/restricted", "2-var/one-restricted", "2-var/both-restricted"}
    assert empty_pools(PAPER) == set()
    assert empty_pools(Split(TaskConfig(), SplitConfig(train_fraction=1.0))) == held_out
    assert empty_pools(Split(TaskConfig(), SplitConfig(never_left="", never_right=""))) == restricted
    assert empty_pools(Split(TaskConfig(), SplitConfig(never_left=""))) == {"2-var/both-restricted"}


def test_a_pool_without_one_of_its_kinds_has_the_other() -> None:
    split = Split(TaskConfig(), SplitConfig(never_left=""))
    letters = drawn(split, "1-var/restricted", 500, seed=0).variables
    assert set(map(tuple, letters.tolist())) == {(NO_VARIABLE, 0), (NO_VARIABLE, 1)}


def test_a_pool_depends_on_its_name_and_seed_alone() -> None:
    first, again = (
        [str(fields(drawn(PAPER, name, 50, seed))) for name in DEFINITIONS for seed in (0, 1, 2)] for _ in range(2)
    )
    assert first == again
    assert len(set(first)) == 27, "names and seeds all differ"
    for kinds in ("1-var", "2-var"):
        seen, held_out = (drawn(PAPER, f"{kinds}/{pairs}", 50, 0).variables for pairs in ("seen", "held-out"))
        assert not np.array_equal(seen, held_out), f"the {kinds} pools are drawn independently"


@pytest.mark.parametrize("name", ["paper", "small", "long"])
@pytest.mark.parametrize("kind", KINDS)
def test_full_prefixes_have_all_values_distinct(kind: Kind, name: str) -> None:
    split = SPLITS[name]
    sequences = full_prefix_sequences(split, kind, 400, seed=4)
    assert_valid(split, sequences)
    assert {KINDS[code] for code in kind_codes(sequences)} == {kind}
    assert {len(row) for row in assignments(split, sequences)} == {split.task.max_assignments}
    for row, tokens in enumerate(sequences.tokens.tolist()):
        constants = [token for token in tokens if token < split.task.modulus]
        assert len(set(constants)) == len(constants), f"{tokens} has a value twice"
        assert split.seen[tuple(sequences.values[row])], sequences.values[row]
        assert never_shown(split, sequences.variables[row].tolist()) == 0, sequences.variables[row]


def test_full_prefixes_leave_every_value_as_likely() -> None:
    sequences = full_prefix_sequences(SMALL, Kind.LEFT, 40_000, seed=0)
    rows = zip(sequences.values.tolist(), assignments(SMALL, sequences), strict=True)
    outcomes = ((*values, *({value for _, _, value in row} - {values[0]})) for values, row in rows)
    pairs = [(left, right) for left, right in SMALL.seen_pairs.tolist() if left != right]
    expected = [(left, right, value) for left, right in pairs for value in set(range(7)) - {left, right}]
    assert_law(outcomes, uniform(expected), "operands and distractor")


def test_full_prefixes_with_given_letters() -> None:
    given = np.array([[11, 0], [10, 1], [3, 4]] * 40)  # also letters that training never puts there
    sequences = full_prefix_sequences(PAPER, Kind.TWO, len(given), 1, variables=given)
    assert_valid(PAPER, sequences)
    assert sequences.variables.tolist() == given.tolist()


def test_full_prefixes_depend_on_kind_and_seed_alone() -> None:
    first, again = (
        [str(fields(full_prefix_sequences(PAPER, kind, 50, seed))) for kind in KINDS for seed in (0, 1)]
        for _ in range(2)
    )
    assert first == again
    assert len(set(first)) == 8, "kinds and seeds all differ"


def test_full_prefixes_that_cannot_be_distinct_are_refused() -> None:
    with pytest.raises(InputError, match=r"modulus is 2, expected at least max_assignments \+ 2 \(4\)"):
        full_prefix_sequences(TINY, Kind.ZERO, 1, seed=0)
    one_pair = (Split(SMALL.task, SplitConfig(0.03, never_left="", never_right="", seed=seed)) for seed in range(100))
    only_equal = next(split for split in one_pair if split.seen.trace())
    with pytest.raises(InputError, match="no training pair has two different values"):
        full_prefix_sequences(only_equal, Kind.ZERO, 1, seed=0)
