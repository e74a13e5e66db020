"""The training distribution."""

from __future__ import annotations

from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from aa_core.task.config import TaskConfig
from aa_core.task.problems import problem_from_tokens
from aa_core.task.sampling import KINDS, Kind
from aa_core.task.sequences import NO_VARIABLE, Sequences, concatenate
from aa_core.task.split import Split, SplitConfig
from aa_core.task.training_data import training_batch
from circuit_tests.meta.task.sampling_law import (
    SPLITS,
    assert_law,
    assert_valid,
    assignments,
    fields,
    kind_codes,
    of_kind,
    sequence_law,
    uniform,
)

PAPER, SMALL, LONG, TINY = (SPLITS[name] for name in ("paper", "small", "long", "tiny"))


@cache
def training_draws(name: str) -> Sequences:
    return concatenate([training_batch(SPLITS[name], 3, index, 512) for index in range(120)])


@pytest.mark.parametrize("name", SPLITS)
def test_sequences_are_what_their_tokens_say(name: str) -> None:
    assert_valid(SPLITS[name], training_draws(name)[:1000])


@pytest.mark.parametrize("name", SPLITS)
def test_training_never_shows_what_it_holds_out(name: str) -> None:
    split, batch = SPLITS[name], training_draws(name)
    assert set(map(tuple, batch.values.tolist())) == set(map(tuple, split.seen_pairs.tolist())), "all training pairs"
    for side, never in enumerate((split.config.never_left, split.config.never_right)):
        used = {split.task.variables[index] for index in batch.variables[:, side] if index != NO_VARIABLE}
        assert used == set(split.task.variables) - set(never), f"every letter allowed on side {side} and no other"


@pytest.mark.parametrize(
    ("s", "r"), [(1.0, 0.05), (1.0, 1.0), (1.0, 2.0), (1.0, 0.0), (0.5, 2.0), (0.0, 1.0), (0.0, 0.0)]
)
def test_kinds_have_the_weights_of_the_paper(s: float, r: float) -> None:
    split = Split(TaskConfig(), SplitConfig(one_variable_frequency=s, two_variable_frequency=r))
    batch = concatenate([training_batch(split, 0, index, 512) for index in range(100)])
    weights = {Kind.ZERO: 12, Kind.LEFT: 10 * s, Kind.RIGHT: 10 * s, Kind.TWO: 10 * r}
    law = {kind: weight / sum(weights.values()) for kind, weight in weights.items() if weight}
    assert_law((KINDS[code] for code in kind_codes(batch)), law, f"kinds at s = {s}, r = {r}")


def test_kind_weights_follow_the_allowed_letters() -> None:
    split = Split(TaskConfig(7, 6, 2, 8), SplitConfig(never_left="f", never_right="abc"))
    batch = concatenate([training_batch(split, 0, index, 512) for index in range(60)])
    assert_law(kind_codes(batch), {0: 6 / 19, 1: 5 / 19, 2: 3 / 19, 3: 5 / 19}, "kinds")


@pytest.mark.parametrize("kind", KINDS)
def test_number_of_assignments_is_uniform(kind: Kind) -> None:
    drawn = of_kind(training_draws("paper"), kind)
    law = {2: 2 / 6, 3: 1 / 6, 4: 1 / 6, 5: 1 / 6, 6: 1 / 6} if kind == Kind.TWO else uniform(range(1, 7))
    assert_law(map(len, assignments(PAPER, drawn)), law, f"assignments of {kind}")


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_uniform(kind: Kind) -> None:
    drawn = of_kind(training_draws("small"), kind)
    law = uniform(map(tuple, SMALL.seen_pairs.tolist()))
    assert_law(map(tuple, drawn.values.tolist()), law, f"pairs of {kind}")


@pytest.mark.parametrize("name", ["paper", "small"])
def test_operand_letters_are_uniform_on_the_allowed_side(name: str) -> None:
    split, batch = SPLITS[name], training_draws(name)
    left, right = (
        [index for index, letter in enumerate(split.task.variables) if letter not in never]
        for never in (split.config.never_left, split.config.never_right)
    )
    assert_law(of_kind(batch, Kind.LEFT).variables[:, 0].tolist(), uniform(left), "1L")
    assert_law(of_kind(batch, Kind.RIGHT).variables[:, 1].tolist(), uniform(right), "1R")
    both = {(a, b): 1 / len(left) / len(set(right) - {a}) for a in left for b in right if a != b}
    assert_law(map(tuple, of_kind(batch, Kind.TWO).variables.tolist()), both, "2-var")


@pytest.mark.parametrize(
    ("kind", "allowed"), [(Kind.ZERO, [NO_VARIABLE]), (Kind.LEFT, [0, 1, 2]), (Kind.RIGHT, [1, 2, 3])]
)
def test_distractor_letters_and_order_are_uniform(kind: Kind, allowed: list[int]) -> None:
    drawn = of_kind(training_draws("small"), kind)
    operands = drawn.variables.max(axis=1).tolist()
    orders = [tuple(letter for _, letter, _ in row) for row in assignments(SMALL, drawn)]
    outcomes = [(operand, order) for operand, order in zip(operands, orders, strict=True) if len(order) == 2]
    expected = [
        (operand, order)
        for operand, order in product(allowed, permutations(range(4), 2))
        if operand in order or operand == NO_VARIABLE
    ]
    assert_law(outcomes, uniform(expected), f"operand letter and letters in order of {kind}")


def test_every_order_of_many_assignments_is_as_likely() -> None:
    drawn = of_kind(training_draws("long"), Kind.TWO)
    orders = [[letter for _, letter, _ in row] for row in assignments(LONG, drawn)]
    for n in (2, 3, 5):
        places = (
            tuple(map(order.index, operands))
            for operands, order in zip(drawn.variables.tolist(), orders, strict=True)
            if len(order) == n
        )
        assert_law(places, uniform(permutations(range(n), 2)), f"places of the two operands among {n}")


@pytest.mark.parametrize(("name", "n"), [("small", 1), ("small", 2), ("paper", 4), ("paper", 5)])
def test_each_pad_picks_a_gap_uniformly(name: str, n: int) -> None:
    split = SPLITS[name]
    rows = [row for row in assignments(split, training_draws(name)) if len(row) == n][:20_000]
    starts = np.pad([[at for at, _, _ in row] for row in rows], ((0, 0), (1, 1)), constant_values=-2)
    starts[:, -1] = split.task.prefix_length
    gaps = (tuple(layout) for layout in (np.diff(starts, axis=1) - 2).tolist())
    n_pads = split.task.prefix_length - 2 * n
    law = {
        layout: float(stats.multinomial.pmf(layout, n_pads, [1 / (n + 1)] * (n + 1)))
        for layout in product(range(n_pads + 1), repeat=n + 1)
        if sum(layout) == n_pads
    }
    assert_law(gaps, law, f"gaps around {n} assignments")


def test_distractor_values_are_uniform() -> None:
    rows = assignments(SMALL, of_kind(training_draws("small"), Kind.ZERO))
    pairs = (tuple(value for _, _, value in row) for row in rows if len(row) == 2)
    assert_law(pairs, uniform(product(range(7), repeat=2)), "two distractors")

    drawn = of_kind(training_draws("paper"), Kind.LEFT)
    letters_and_rows = zip(drawn.variables[:, 0], assignments(PAPER, drawn), strict=True)
    values = (value for operand, row in letters_and_rows for _, letter, value in row if letter != operand)
    assert_law(values, uniform(range(59)), "distractors beside an operand")


def test_distractor_values_do_not_depend_on_the_operand() -> None:
    drawn = of_kind(training_draws("small"), Kind.RIGHT)
    operands = zip(drawn.variables[:, 1], drawn.values[:, 1].tolist(), assignments(SMALL, drawn), strict=True)
    beside = ((right, value) for operand, right, row in operands for _, letter, value in row if letter != operand)
    shares = SMALL.seen.sum(axis=0) / SMALL.n_train_pairs
    law = {(right, value): shares[right] / 7 for right, value in product(range(7), repeat=2)}
    assert_law(beside, law, "operand and distractor")


def test_training_has_exactly_its_law() -> None:
    """All sequences of a tiny task have the probabilities that the description of the task gives them."""
    # Letters a b c; c never on the left, a never on the right; weights 3 : 2 : 2 : 2 * .5.
    zero = {(NO_VARIABLE, NO_VARIABLE): 3 / 8}
    left = {(0, NO_VARIABLE): 1 / 8, (1, NO_VARIABLE): 1 / 8}
    right = {(NO_VARIABLE, 1): 1 / 8, (NO_VARIABLE, 2): 1 / 8}
    two = {(0, 1): 1 / 32, (0, 2): 1 / 32, (1, 2): 1 / 16}
    law = sequence_law(TINY.task, list(map(tuple, TINY.seen_pairs.tolist())), zero | left | right | two)
    assert (TINY.n_train_pairs, len(law)) == (3, 678)
    assert_law(map(tuple, training_draws("tiny").tokens.tolist()), law, "training sequences")


def test_a_batch_depends_on_seed_and_index_alone() -> None:
    first = fields(training_batch(PAPER, 5, 7, 64))
    np.random.seed(1)  # noqa: NPY002 - the global generator must not matter
    training_batch(PAPER, 5, 8, 64)
    again = Split(TaskConfig(), SplitConfig())
    assert fields(training_batch(again, 5, 7, 64)) == first
    for seed, index in ((5, 8), (6, 7), (7, 5), (0, 7), (5, 0)):
        assert fields(training_batch(PAPER, seed, index, 64))[0] != first[0], f"seed {seed}, index {index}"


def test_batches_of_a_run_do_not_repeat() -> None:
    firsts = {tuple(training_batch(PAPER, 0, index, 2).tokens.ravel().tolist()) for index in range(500)}
    assert len(firsts) == 500


def test_training_data_are_pinned() -> None:
    """Runs can be resumed, and published runs repeated, only while the draws stay what they are."""
    rows = training_batch(PAPER, 0, 0, 6).tokens
    assert [problem_from_tokens(PAPER.task, row).text(PAPER.task) for row in rows] == [
        "_ _ e=57, _ g=22, _ b=33, _ _ 25+30=?",
        "d=0, l=41, h=14, c=10, g=53, a=44, 44+33=?",
        "_ _ l=42, _ e=22, _ g=40, _ _ 39+14=?",
        "_ _ c=31, h=21, _ _ _ j=0, _ 16+h=?",
        "_ _ j=7, _ _ _ _ k=2, _ _ j+28=?",
        "_ _ _ _ h=20, _ _ _ _ _ _ 10+14=?",
    ]
