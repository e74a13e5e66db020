"""Addition, routing and refinement on the model compiled by hand, and on copies with one mechanism moved or removed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from aa_core.circuits.addition import attention_output_accuracy, own_sum_with_donor, table_accuracy, table_margin
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.refinement import (
    ONE_VARIABLE,
    PER_LETTER,
    TWO_VARIABLES,
    Role,
    last_held_letter,
    least_letter,
    least_score_gap,
    letter_accuracy,
    letter_sequences,
    raised_score_accuracy,
    raised_score_of_held_letter,
    score_gaps,
)
from aa_core.circuits.routing import (
    ideal_routing_accuracy,
    operands_top_two,
    unbound_accuracy,
    valueless_accuracy,
    valueless_top_two,
)
from aa_core.circuits.subject import Subject
from aa_core.statistics import NotApplicable
from aa_core.task.sampling import KINDS, Kind
from aa_core.task.sequences import NO_VARIABLE
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.compiled_model import (
    CARRIED,
    CLASSES,
    CONSTANTS,
    POSITIONS,
    SHARP,
    SPLIT,
    TASK,
    VARIABLES,
    WAVES,
    compiled_parameters,
    compiled_subject,
)

CHANCE = 0.3  # more than any accuracy by chance, or by binding at random, on this task
A, F = 0, 5  # letters that the split never puts on the right, on the left


def changed(name: str, rows: slice, columns: slice, value: float) -> Subject:
    """The model with a block of one matrix, such as `W_K0`, set to a value."""
    weight = compiled_parameters()[f"blocks.{name[-1]}.attn.{name[:-1]}"][0]
    weight[rows, columns] = value
    return compiled_subject(**{name: weight})


def adding_through_blocks_0() -> Subject:
    """Constants that are operands reach `=` as waves through blocks.0; blocks.1 writes nothing."""
    p = compiled_parameters()
    v0, v1 = p["blocks.0.attn.W_V"][0], p["blocks.1.attn.W_V"][0]
    v0[CONSTANTS, WAVES] = v1[CONSTANTS, WAVES]
    return compiled_subject(W_V0=v0, W_V1=torch.zeros_like(v1))


def with_score(letter: int, nats: float) -> Subject:
    """The model with that many nats more in the blocks.0 score of `=` against a letter."""
    key, query = VARIABLES.start + letter, POSITIONS.start + TASK.equals_position
    return changed("W_K0", slice(key, key + 1), slice(query, query + 1), nats / SHARP)


def without_letter(letter: int) -> Subject:
    """The model whose blocks.0 does not carry a letter."""
    row = VARIABLES.start + letter
    return changed("W_V0", slice(row, row + 1), CARRIED, 0)


def test_the_addition_circuit_adds_without_the_rest_of_the_model(compiled: Subject) -> None:
    assert table_accuracy(compiled).value == 1
    assert table_accuracy(compiled).n == TASK.modulus**2
    assert table_accuracy(compiled, held_out=True).n == (~SPLIT.seen).sum()
    assert table_margin(compiled).value > 1
    blind = changed("W_K1", slice(None), slice(None), 0)
    assert table_accuracy(blind).value == 1, "attention has no part in it"


def test_held_out_pairs_are_counted_alone() -> None:
    p = compiled_parameters()
    p["unembed.W_U"][CLASSES.start + 3] *= -1  # so sums of 3 are missed
    subject = Subject(p, SPLIT, compiled_subject().data)
    sums = np.add.outer(np.arange(TASK.modulus), np.arange(TASK.modulus)) % TASK.modulus
    assert table_accuracy(subject).value == pytest.approx(1 - 1 / TASK.modulus)
    assert table_accuracy(subject, held_out=True).value == pytest.approx((sums[~SPLIT.seen] != 3).mean())


def test_the_margin_is_a_mean_in_standard_deviations_of_all_logits(compiled: Subject) -> None:
    p = compiled_parameters()
    written = p["blocks.1.attn.W_V"][0][CONSTANTS]
    logits, margins, wrong = [], [], []
    for n in range(TASK.modulus):
        for m in range(TASK.modulus):
            row = (written[n] + written[m]) @ p["blocks.1.mlp.W_in"]
            row = (row.relu() @ p["blocks.1.mlp.W_out"] @ p["unembed.W_U"]).numpy()
            logits.append(row)
            wrong.append(np.delete(row, (n + m) % TASK.modulus).max())
            margins.append(row[(n + m) % TASK.modulus] - wrong[-1])
    assert min(wrong) < 0, "no logit of 0 may stand in for the right one's"
    assert table_margin(compiled).value == pytest.approx(np.mean(margins) / np.std(logits, ddof=1), rel=1e-5)


def test_an_addition_circuit_that_writes_nothing_has_no_margin(compiled: Subject) -> None:
    silent = changed("W_V1", slice(None), slice(None), 0)
    assert table_margin(silent).value == 0
    assert table_accuracy(silent).value < CHANCE
    everywhere_wrong = compiled_parameters()
    everywhere_wrong["unembed.W_U"] *= -1
    assert table_margin(Subject(everywhere_wrong, SPLIT, compiled.data)).value < 0


def test_a_model_that_adds_through_blocks_0_takes_the_donors_sum(compiled: Subject) -> None:
    other = adding_through_blocks_0()
    assert compiled.full_prefix(Kind.ZERO).correct.all()
    assert other.full_prefix(Kind.ZERO).correct.all()
    assert own_sum_with_donor(compiled).value == 1
    assert own_sum_with_donor(other).value < CHANCE


@pytest.mark.parametrize("kind", KINDS)
def test_the_mlp_adds_from_what_attention_writes(compiled: Subject, kind: Kind) -> None:
    assert attention_output_accuracy(compiled, kind).value == 1
    assert attention_output_accuracy(adding_through_blocks_0(), kind).value < CHANCE


@pytest.mark.parametrize("kind", KINDS)
def test_the_right_attention_makes_up_for_what_does_not_find_it(compiled: Subject, kind: Kind) -> None:
    blind = changed("W_K1", slice(None), slice(None), 0)
    assert blind.full_prefix(kind).correct.mean() < CHANCE
    assert ideal_routing_accuracy(blind, kind).value == 1


@pytest.mark.parametrize("kind", [Kind.LEFT, Kind.RIGHT, Kind.TWO])
def test_the_right_attention_does_not_help_a_model_that_adds_elsewhere(kind: Kind) -> None:
    assert ideal_routing_accuracy(adding_through_blocks_0(), kind).value < CHANCE


def test_operands_are_the_top_two_of_what_is_before_equals(compiled: Subject) -> None:
    equals = TASK.equals_position
    resting = changed("W_K0", slice(POSITIONS.start + equals, POSITIONS.start + equals + 1), slice(None), 1.1)
    assert (resting.full_prefix(Kind.TWO).activations.pattern0[:, -1].argmax(-1) == equals).all()
    plus = changed("W_K0", slice(POSITIONS.start + TASK.plus_position, POSITIONS.start + equals), slice(None), 1.1)
    uniform = changed("W_K0", slice(None), slice(None), 0)
    for kind in KINDS:
        assert operands_top_two(compiled, kind).value == 1
        assert operands_top_two(resting, kind).value == 1
        assert operands_top_two(plus, kind).value == 0
        assert operands_top_two(uniform, kind).value == 0, "ties are no top two"


def test_uniform_attention_in_blocks_0_binds_nothing(compiled: Subject) -> None:
    uniform = changed("W_K0", slice(None), slice(None), 0)
    for kind in KINDS:
        assert unbound_accuracy(compiled, kind).value == uniform.full_prefix(kind).correct.mean()
    assert unbound_accuracy(compiled, Kind.ZERO).value > 0.9
    assert unbound_accuracy(compiled, Kind.LEFT).value < CHANCE
    assert unbound_accuracy(adding_through_blocks_0(), Kind.ZERO).value < CHANCE


def test_routing_does_not_need_values(compiled: Subject) -> None:
    for kind in KINDS:
        assert valueless_accuracy(compiled, kind).value < CHANCE
        assert valueless_top_two(compiled, kind).value == 1
    seven = CONSTANTS.start + 7
    by_value = changed("W_K1", slice(seven, seven + 1), slice(POSITIONS.start, POSITIONS.stop), 3)
    assert by_value.full_prefix(Kind.TWO).correct.mean() < 1, "`=` goes to 7 wherever it stands"
    assert valueless_top_two(by_value, Kind.TWO).value == 1, "which cannot be seen once 7 is as the others"


@pytest.mark.parametrize("role", [*ONE_VARIABLE, *TWO_VARIABLES])
def test_letter_sequences_have_each_letter_in_its_role(compiled: Subject, role: Role) -> None:
    sequences = letter_sequences(SPLIT, role, compiled.data)
    letters = np.repeat(np.arange(TASK.n_variables), PER_LETTER)
    np.testing.assert_array_equal(sequences.variables[:, role.side], letters)
    others = sequences.variables[:, 1 - role.side]
    if role.kind is Kind.TWO:
        assert (others != letters).all()
        assert set(others) == set(SPLIT.allowed_variables(1 - role.side))
    else:
        assert (others == NO_VARIABLE).all()
    assert SPLIT.seen[tuple(sequences.values.T)].all()
    prefixes = sequences.tokens[:, : TASK.prefix_length]
    assigned = [row[row < TASK.modulus] for row in prefixes]
    assert {len(np.unique(values)) for values in assigned} == {TASK.max_assignments}, "all assigned, values distinct"


def test_every_letter_works_in_the_compiled_model(compiled: Subject) -> None:
    for roles in (ONE_VARIABLE, TWO_VARIABLES):
        for is_restricted in (False, True):
            assert least_letter(compiled, roles, is_restricted=is_restricted).value == 1


@pytest.mark.parametrize(("letter", "side"), [(A, 1), (F, 0)])
def test_the_least_letter_is_named_with_its_side(letter: int, side: int) -> None:
    subject = without_letter(letter)
    restricted = least_letter(subject, ONE_VARIABLE, is_restricted=True)
    assert restricted.value < 0.5
    assert restricted.n == PER_LETTER
    assert restricted.note == f"least for {'abcdef'[letter]} on the {('left', 'right')[side]}"
    allowed = least_letter(subject, ONE_VARIABLE, is_restricted=False)
    assert allowed.note == f"least for {'abcdef'[letter]} on the {('left', 'right')[1 - side]}"
    assert letter_accuracy(subject, letter, side).value == restricted.value
    assert letter_accuracy(subject, 2, side).value == 1


def test_splits_without_restricted_letters_have_no_such_claims(compiled: Subject) -> None:
    free = dataclasses.replace(compiled, split=Split(TASK, SplitConfig(never_left="", never_right="")))
    assert least_letter(free, ONE_VARIABLE, is_restricted=False).value == 1
    with pytest.raises(NotApplicable, match="restricts no letter"):
        least_letter(free, ONE_VARIABLE, is_restricted=True)
    with pytest.raises(NotApplicable, match="does not restrict some"):
        least_score_gap(free)


def test_score_gaps_are_in_nats_and_against_unrestricted_letters(compiled: Subject) -> None:
    np.testing.assert_allclose(score_gaps(compiled), 0, atol=1e-4)
    np.testing.assert_allclose(score_gaps(with_score(A, -3)), [-3, 0, 0, 0, 0, 0], atol=1e-4)
    np.testing.assert_allclose(score_gaps(with_score(1, 4)), [-1, 3, -1, -1, -1, -1], atol=1e-4)
    assert least_score_gap(with_score(F, -3)).value == pytest.approx(-3, abs=1e-4)
    assert least_score_gap(with_score(F, -3)).note == "least for f"
    assert least_score_gap(with_score(1, -8)).value == pytest.approx(2, abs=1e-4), "b is not restricted"


@pytest.mark.parametrize(("letter", "side"), [(A, 1), (F, 0)])
def test_one_raised_score_makes_a_held_letter_work(letter: int, side: int) -> None:
    held = with_score(letter, -8)
    assert letter_accuracy(held, letter, side).value < 0.5
    assert raised_score_accuracy(held, letter, side, operand=side).value == 1
    assert raised_score_accuracy(held, letter, side, operand=1 - side).value < 0.5


def trajectory(*subjects: Subject) -> TrajectorySubject:
    """Every 100 steps, under a split that restricts two letters on both sides: a low score hits a letter on both."""
    split = Split(TASK, SplitConfig(never_left="af", never_right="af"))
    subjects = tuple(dataclasses.replace(subject, split=split) for subject in subjects)
    return TrajectorySubject(tuple(100 * (index + 1) for index in range(len(subjects))), subjects)


def test_the_last_held_letter_is_sought_before_all_letters_work(compiled: Subject) -> None:
    blind = changed("W_K1", slice(None), slice(None), 0)
    run = trajectory(blind, with_score(F, -8), with_score(A, -8), blind, compiled, with_score(F, -8))
    held = last_held_letter(run)
    assert held is not None
    assert (held.checkpoint, held.letter) == (2, A), "no later one: there the others fail, or all letters work before"
    raised = raised_score_of_held_letter(run)
    assert raised.value == 1
    assert raised.note.startswith(f"a on the {('left', 'right')[held.side]} at step 300, 0.")
    assert raised_score_of_held_letter(run, control=True).value < 0.5


def test_a_letter_that_works_half_the_time_is_not_held(compiled: Subject) -> None:
    run = trajectory(with_score(A, -8), compiled)
    for side in (0, 1):
        for letter in (A, F):
            key = (letter_accuracy, ("letter", letter), ("side", side))
            assert run.curve(letter_accuracy, letter=letter, side=side) is run._curves[key]
            run._curves[key] = np.array([0.6, 1.0])
    with pytest.raises(NotApplicable, match="no checkpoint at which"):
        last_held_letter(run)


def test_a_run_without_a_held_letter(compiled: Subject) -> None:
    blind = changed("W_K1", slice(None), slice(None), 0)
    assert last_held_letter(trajectory(blind, blind)) is None
    assert np.isnan(raised_score_of_held_letter(trajectory(blind, blind)).value), "a model that never binds must fail"
    with pytest.raises(NotApplicable, match="none is held back"):
        last_held_letter(trajectory(blind, compiled))
    with pytest.raises(NotApplicable, match="fails to the end"):
        last_held_letter(trajectory(blind, with_score(A, -8)))


@pytest.mark.parametrize(("works", "is_held_back"), [(149, False), (150, True)])
def test_a_letter_that_works_soon_after_the_others_was_not_held_back(
    compiled: Subject, works: int, is_held_back: bool
) -> None:
    run = dataclasses.replace(trajectory(with_score(A, -8), compiled), steps=(100, works))
    if is_held_back:
        held = last_held_letter(run)
        assert held is not None
        assert (held.checkpoint, held.letter) == (0, A)
    else:
        with pytest.raises(NotApplicable, match=f"step {works}, soon after the unrestricted ones at step 100"):
            last_held_letter(run)
