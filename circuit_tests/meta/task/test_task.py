"""Sizes of the task, and which pairs and letters training may use."""

from __future__ import annotations

import random

import numpy as np
import pytest

from aa_core.errors import InputError
from aa_core.task.config import TaskConfig
from aa_core.task.sequences import NO_VARIABLE, Sequences, concatenate
from aa_core.task.split import Split, SplitConfig

PAPER = Split(TaskConfig(), SplitConfig())
CONFIGS = [TaskConfig(), TaskConfig(7, 4, 2, 8), TaskConfig(13, 6, 5, 23), TaskConfig(2, 2, 2, 9)]


def test_paper_numbering() -> None:
    task = TaskConfig()
    assert (task.modulus, task.n_variables, task.max_assignments, task.n_ctx) == (59, 12, 6, 16)
    assert (task.plus_token, task.equals_token, task.pad_token) == (59, 60, 61)
    assert [task.first_variable_token + task.variable_index(name) for name in "abl"] == [62, 63, 73]
    assert task.variables == "abcdefghijkl"
    assert task.d_vocab == 74
    assert task.prefix_length == 12
    assert (task.plus_position, task.left_position, task.right_position, task.equals_position) == (12, 13, 14, 15)


@pytest.mark.parametrize("task", CONFIGS, ids=str)
def test_tokens_and_positions_are_numbered_without_gap_or_overlap(task: TaskConfig) -> None:
    variables = [task.first_variable_token + task.variable_index(name) for name in task.variables]
    tokens = [*range(task.modulus), task.plus_token, task.equals_token, task.pad_token, *variables]
    assert tokens == list(range(task.d_vocab))
    last = [task.plus_position, task.left_position, task.right_position, task.equals_position]
    assert [*range(task.prefix_length), *last] == list(range(task.n_ctx))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"modulus": 1}, "modulus is 1, expected at least 2"),
        ({"n_variables": 1, "max_assignments": 1}, "n_variables is 1, expected 2 to 26"),
        ({"n_variables": 27}, "n_variables is 27, expected 2 to 26"),
        ({"max_assignments": 1}, "max_assignments is 1, expected 2 to n_variables"),
        ({"max_assignments": 13, "n_ctx": 40}, "max_assignments is 13, expected 2 to n_variables"),
        ({"n_ctx": 15}, "n_ctx is 15, expected at least 16"),
    ],
    ids=str,
)
def test_sizes_that_do_not_fit_are_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        TaskConfig(**sizes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["m", "A", "", "ab", "ä", "1", "\n"], ids=repr)
def test_unknown_variables_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown variable .*, expected one of a, b, c") as caught:
        TaskConfig().variable_index(name)
    assert "\n" not in str(caught.value)


def test_paper_pairs_are_pinned() -> None:
    """`random.Random(42).sample` of all ordered pairs starts with these in the paper's code."""
    assert PAPER.n_train_pairs == len(PAPER.seen_pairs) == 2436
    assert len(PAPER.held_out_pairs) == 1045
    drawn_first = [(44, 23), (7, 43), (1, 43), (51, 28), (19, 5), (17, 0)]
    assert all(PAPER.seen[pair] for pair in drawn_first)
    assert PAPER.seen_pairs[:5].tolist() == [[0, 1], [0, 2], [0, 3], [0, 4], [0, 6]]
    assert PAPER.held_out_pairs[:5].tolist() == [[0, 0], [0, 5], [0, 7], [0, 9], [0, 17]]


@pytest.mark.parametrize("task", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", [0, 42])
def test_pairs_are_sampled_from_row_major_order(task: TaskConfig, seed: int) -> None:
    split = Split(task, SplitConfig(train_fraction=0.6, never_left="", never_right="", seed=seed))
    chosen = random.Random(seed).sample(range(task.modulus**2), int(0.6 * task.modulus * task.modulus))
    assert np.flatnonzero(split.seen.ravel()).tolist() == sorted(chosen)
    flat_seen, flat_held_out = (
        (pairs @ [task.modulus, 1]).tolist() for pairs in (split.seen_pairs, split.held_out_pairs)
    )
    assert flat_seen == sorted(chosen), "training pairs in row-major order"
    assert flat_held_out == sorted(set(range(task.modulus**2)) - set(chosen)), "all others in row-major order"


@pytest.mark.parametrize(
    ("fraction", "count"), [(0.1, 348), (0.18, 626), (0.25, 870), (0.3, 1044), (0.4, 1392), (1.0, 3481)]
)
def test_number_of_training_pairs(fraction: float, count: int) -> None:
    split = Split(TaskConfig(), SplitConfig(train_fraction=fraction))
    assert (len(split.seen_pairs), len(split.held_out_pairs)) == (count, 3481 - count)


def test_another_seed_holds_out_other_pairs() -> None:
    assert not np.array_equal(PAPER.seen, Split(TaskConfig(), SplitConfig(seed=43)).seen)


def test_letters_of_each_side() -> None:
    assert PAPER.restricted_variables(0).tolist() == [10, 11], "k, l never on the left"
    assert PAPER.restricted_variables(1).tolist() == [0, 1], "a, b never on the right"
    assert PAPER.allowed_variables(0).tolist() == list(range(10))
    assert PAPER.allowed_variables(1).tolist() == list(range(2, 12))
    split = Split(TaskConfig(), SplitConfig(never_left="fbf", never_right=""))
    assert split.restricted_variables(0).tolist() == [1, 5], "sorted, without repeats"
    assert split.restricted_variables(1).tolist() == []
    assert split.allowed_variables(1).tolist() == list(range(12))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        *(({"train_fraction": f}, "train_fraction is .*, expected 0 < f <= 1") for f in (0.0, -0.1, 1.01, np.nan)),
        *(
            ({f"{n}_variable_frequency": value}, f"{n}_variable_frequency is .*, expected at least 0 and finite")
            for n in ("one", "two")
            for value in (-1.0, np.nan, np.inf)
        ),
        ({"train_fraction": 0.01}, "train_fraction 0.01 leaves no training pair of 49"),
        ({"never_left": "e"}, "unknown variable 'e'"),
        ({"never_right": "a b"}, "unknown variable ' '"),
        ({"never_left": "abc"}, "never_left and never_right must leave at least two letters"),
        ({"never_right": "abcd"}, "never_left and never_right must leave at least two letters"),
    ],
    ids=str,
)
def test_splits_that_cannot_be_trained_on_are_refused(values: dict[str, float | str], message: str) -> None:
    defaults: dict[str, float | str] = {"never_left": "", "never_right": ""}
    with pytest.raises(InputError, match=message) as caught:
        Split(TaskConfig(7, 4, 2, 8), SplitConfig(**(defaults | values)))  # pyright: ignore[reportArgumentType]
    assert "\n" not in str(caught.value)


def test_sequences_are_sliced_and_joined_row_by_row() -> None:
    rows = np.arange(3)
    parts = [
        Sequences(
            tokens=np.add.outer(start + rows, np.zeros(16, int)),
            answers=start + rows,
            values=np.stack([start + rows] * 2, axis=1),
            variables=np.full((3, 2), NO_VARIABLE),
            sources=np.stack([start + rows] * 2, axis=1),
        )
        for start in (0, 3)
    ]
    both = concatenate(parts)
    assert len(both) == 6
    assert both.answers.tolist() == [0, 1, 2, 3, 4, 5]
    picked = both[np.array([5, 1])]
    for field in (picked.tokens[:, 0], picked.answers, picked.values[:, 1], picked.sources[:, 0]):
        assert field.tolist() == [5, 1], "every field has the same rows"
    assert len(both[1:3]) == len(both[1:3].variables) == 2
