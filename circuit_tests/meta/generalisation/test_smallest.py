"""The smallest wrong sequence: the order, exactness, and what is made small where no plain sequence is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
import torch

from aa_core.circuits.subject import Subject
from aa_core.controls.edits import shifted_scores
from aa_core.errors import InputError
from aa_core.generalisation.drawing import Region
from aa_core.generalisation.layout import parse_layout
from aa_core.generalisation.outcome import answered
from aa_core.generalisation.records import replayed
from aa_core.generalisation.smallest import first_wrong, plain_layouts, simplified, smallest_wrong
from aa_core.generalisation.whole_search import Search
from aa_core.task.config import TaskConfig
from aa_core.task.problems import parse_problem, sequences_from_problems
from aa_core.task.sampling import KINDS, Kind
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.checkpoint_files import small_parameters
from circuit_tests.meta.compiled_model import SPLIT, TASK


@pytest.fixture(scope="module")
def first_place_unseen(good: Subject) -> Subject:
    """The constant of an assignment at the very start does not see its letter."""
    start = TASK.d_vocab
    return replace(good, parameters=shifted_scores(good.parameters, np.array([start + 1]), np.array([start]), -100.0))


def texts(task: TaskConfig, kind: Kind) -> Iterator[str]:
    """All plain sequences of a kind as `aa ask` takes them, in the order that is documented."""
    constants, letters = range(task.modulus), task.variables
    if kind is Kind.ZERO:
        for letter, value, left, right in product(letters, constants, constants, constants):
            yield f"{letter}={value}, {left}+{right}"
    elif kind is Kind.TWO:
        for first, second in permutations(letters, 2):
            for left, right in product(constants, constants):
                yield f"{first}={left}, {second}={right}, {first}+{second}"
            for left, right in product(constants, constants):
                yield f"{second}={right}, {first}={left}, {first}+{second}"
    else:
        for letter, left, right in product(letters, constants, constants):
            yield f"{letter}={left}, {letter}+{right}" if kind is Kind.LEFT else f"{letter}={right}, {left}+{letter}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", [TaskConfig(3, 3, 2, 10), TaskConfig(7, 4, 2, 8)], ids=["3", "7"])
def test_plain_sequences_are_all_there_in_order(kind: Kind, task: TaskConfig) -> None:
    region = Region(Split(task, SplitConfig(never_left="", never_right="")), (kind,))
    found = [
        layout.problem(left, right).normal(task)
        for layout in plain_layouts(region)
        for left, right in region.pairs.tolist()
    ]
    assert found == [parse_problem(task, text) for text in texts(task, kind)]


@pytest.mark.parametrize("kind", [Kind.LEFT, Kind.RIGHT, Kind.TWO])
def test_the_smallest_is_the_first_wrong_one(kind: Kind, random_model: Subject, good: Subject) -> None:
    """A model that is right now and then, so that the first wrong sequence is not simply the first."""
    b_unseen = shifted_scores(
        good.parameters, np.array([TASK.equals_token]), np.array([TASK.first_variable_token + 1]), -20.0
    )
    for subject in (random_model, replace(good, parameters=b_unseen)):
        problems = [parse_problem(TASK, text) for text in texts(TASK, kind)]
        right = answered(subject, sequences_from_problems(TASK, problems)).correct
        assert not right.all()
        found = smallest_wrong(subject, Region(SPLIT, (kind,)))
        assert found == problems[int(right.argmin())]


def test_pairs_and_letters_are_those_of_the_region(random_model: Subject) -> None:
    region = Region(SPLIT, (Kind.RIGHT,), held_out=True, right="d")
    found = smallest_wrong(random_model, region)
    assert found is not None
    assert found.right == "d"
    assert not SPLIT.seen[found.operand_values(TASK)]


def test_where_all_plain_ones_are_right_a_small_one_is_found(
    good: Subject, first_place_unseen: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aa_core.generalisation.whole_search.TRIES", 100)
    region = Region(SPLIT, (Kind.LEFT,))
    assert smallest_wrong(good, region) is None
    assert smallest_wrong(first_place_unseen, region) is None
    record = Search(first_place_unseen, region, 20, 0).run({}, lambda items, title: items)
    [kind] = record.kinds
    assert kind.failure is not None
    assert not kind.failure.smallest
    problem = parse_problem(TASK, kind.failure.sequence.text)
    assert simplified(first_place_unseen, problem) == problem, "it can be made smaller"
    clean = Search(good, region, 5, 0).run({}, lambda items, title: items)
    assert (clean.kinds[0].failure, clean.kinds[0].example, clean.n_causes) == (None, None, 0)


def test_a_failure_that_is_plain_is_called_the_smallest(random_model: Subject) -> None:
    record = Search(random_model, Region(SPLIT, (Kind.LEFT,)), 5, 0).run({}, lambda items, title: items)
    assert all(found.failure and found.failure.smallest for found in (*record.kinds, *record.causes))


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("a=1, d=0, e=3, c=2, a+2", "a=1, _ _ _ _ _ _ a+2"),
        ("a=1, _ d=0, _ _ _ a+2", "a=1, _ _ _ _ _ _ a+2"),
        ("a=1, _ _ _ _ _ _ a+2", "a=1, _ _ _ _ _ _ a+2"),
    ],
)
def test_distractors_and_pads_go_where_they_can(text: str, simple: str, first_place_unseen: Subject) -> None:
    assert simplified(first_place_unseen, parse_problem(TASK, text)) == parse_problem(TASK, simple)


def test_a_sequence_wrong_anywhere_becomes_plain(good: Subject) -> None:
    name = "blocks.1.mlp.W_out"
    broken = replace(good, parameters={**good.parameters, name: torch.zeros_like(good.parameters[name])})
    for text, simple in (
        ("c=7, a=1, b=5, _ _ a+b", "a=1, b=5, a+b"),
        ("c=7, _ _ a=1, _ _ 3+4", "a=1, 3+4"),  # training always shows an assignment, so one stays
    ):
        assert simplified(broken, parse_problem(TASK, text)) == parse_problem(TASK, simple)


@pytest.mark.parametrize("scale", [0.0, float("inf")])
def test_a_model_without_an_answer_is_undecided(good: Subject, scale: float) -> None:
    name = "unembed.W_U"
    broken = replace(good, parameters={**good.parameters, name: scale * good.parameters[name]})
    record = Search(broken, Region(SPLIT, (Kind.LEFT,)), 2, 0).run({}, lambda items, title: items)
    assert record.kinds[0].failure is not None
    sequence = record.kinds[0].failure.sequence
    assert (sequence.text, sequence.answers) == ("a=0, a+0=?", "model undecided, true 0")
    assert all(line.same for line in replayed(record, broken))


def test_a_split_that_restricts_nothing() -> None:
    task = TaskConfig(7, 4, 2, 8)
    split = Split(task, SplitConfig(train_fraction=1, never_left="", never_right=""))
    subject = Subject(small_parameters(task=task), split)
    record = Search(subject, Region(split), 5, 0).run({}, lambda items, title: items)
    assert [kind.kind for kind in record.kinds] == list(KINDS)
    assert all(kind.example and kind.failure and kind.failure.smallest for kind in record.kinds)
    assert all(line.same for line in replayed(record, subject))
    with pytest.raises(InputError, match="no 1L, 1R sequence of the split has 1 of its letters where training never"):
        Region(split, (Kind.LEFT, Kind.RIGHT), restricted=1)
    with pytest.raises(InputError, match="the split holds out no pair of values: ask for all pairs"):
        Region(split, held_out=True)


def test_example_of_a_layout(good: Subject, random_model: Subject) -> None:
    layout = parse_layout(TASK, "b=L, c=3, b+R")
    region = Region(SPLIT, (Kind.LEFT,), held_out=True)
    assert first_wrong(good, region, layout) is None
    found = first_wrong(random_model, region, layout)
    assert found is not None
    right = answered(random_model, layout.sequences(TASK, region.pairs)).correct
    assert found.operand_values(TASK) == tuple(region.pairs[~right][0])
