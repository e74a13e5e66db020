"""The pull on blocks.1's scores against differences of losses, and on models compiled by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from aa_core.circuits import gradient
from aa_core.circuits.accuracy import full_prefix_accuracy
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.subject import DataConfig, Run, Subject
from aa_core.model.config import ModelConfig
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.model.parameters import initial_parameters
from aa_core.statistics import NotApplicable
from aa_core.task.config import TaskConfig
from aa_core.task.problems import parse_problem, sequences_from_problems
from aa_core.task.sampling import KINDS, Kind
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.compiled_model import (
    CARRIED,
    DATA,
    POSITIONS,
    SPLIT,
    TASK,
    D,
    compiled_parameters,
    compiled_subject,
)

SMALL = TaskConfig(modulus=7, n_variables=4, max_assignments=2, n_ctx=8)
MODEL = ModelConfig(d_model=16, d_head=16, d_mlp=32)
STEP = 1e-3


@pytest.fixture(scope="module")
def random_model() -> Subject:
    split = Split(SMALL, SplitConfig(never_left="d", never_right="a"))
    return Subject(initial_parameters(SMALL, MODEL, 2.0, 0), split, DataConfig(gradient=64))


def loss_with_scores(subject: Subject, run: Run, added: Tensor, *, from_zero: bool) -> float:
    """Loss of the hooked model, in float64, with scores added to blocks.1's row of `=`, or in place of it."""
    model = HookedAssignAndAdd(SMALL, MODEL, subject.parameters).double()

    def change(scores: Tensor, hook: object) -> Tensor:
        scores = scores.clone()
        scores[:, 0, -1] = added if from_zero else scores[:, 0, -1] + added
        return scores

    with torch.no_grad():
        tokens = torch.from_numpy(run.sequences.tokens)
        logits = model.run_with_hooks(tokens, fwd_hooks=[("blocks.1.attn.hook_attn_scores", change)])[:, -1]
        return F.cross_entropy(logits, torch.from_numpy(run.sequences.answers)).item()


@pytest.mark.parametrize("from_zero", [True, False])
def test_the_pull_is_how_the_loss_falls(random_model: Subject, from_zero: bool):
    run = random_model.once(gradient.training_run)
    codes = gradient.ideal_codes(SMALL, run.sequences)
    measured = random_model.once(gradient.pull_at_zero_scores if from_zero else gradient.pull_at_own_scores)
    n = SMALL.n_variables
    for i in range(n):
        for j in range(n):
            added = STEP * (codes.queries[:, i, None] * codes.keys[:, :, j]).double()
            up, down = (loss_with_scores(random_model, run, sign * added, from_zero=from_zero) for sign in (1, -1))
            assert (down - up) / (2 * STEP) == pytest.approx(measured.answers[i, j], rel=1e-3, abs=1e-6), (i, j)


def test_the_naive_pull_is_the_gradient_of_the_matrix_between_carried_variables(random_model: Subject):
    """With `W_K` = 1, `W_Q` is the matrix itself."""
    parameters = dict(random_model.parameters)
    parameters["blocks.1.attn.W_K"] = torch.eye(16)[None]
    subject = Subject(parameters, random_model.split, random_model.data)
    run = subject.once(gradient.training_run)
    ov0 = parameters["blocks.0.attn.W_V"][0] @ parameters["blocks.0.attn.W_O"][0]
    carried = subject.variable_embeddings() @ ov0
    weight = parameters["blocks.1.attn.W_Q"].double().requires_grad_()
    model = HookedAssignAndAdd(SMALL, MODEL, parameters).double()
    logits = torch.func.functional_call(
        model, {"blocks.1.attn.W_Q": weight}, (torch.from_numpy(run.sequences.tokens),)
    )[:, -1]
    (d_weight,) = torch.autograd.grad(F.cross_entropy(logits, torch.from_numpy(run.sequences.answers)), weight)
    expected = -carried.double() @ d_weight[0] @ carried.double().T
    measured = torch.from_numpy(gradient.naive_pull(subject).answers)
    torch.testing.assert_close(measured, expected, rtol=1e-3, atol=1e-6)


def test_codes_of_a_problem():
    sequences = sequences_from_problems(SMALL, [parse_problem(SMALL, "c=5, b=2, b+3")])
    codes = gradient.ideal_codes(SMALL, sequences)
    assert codes.queries.tolist() == [[0, 0.5, 0, 0]]
    assert codes.keys.nonzero().tolist() == [[0, 1, 2], [0, 3, 1]], "c at position 1, b at position 3"
    both = gradient.ideal_codes(SMALL, sequences_from_problems(SMALL, [parse_problem(SMALL, "d=0, a=6, a+d")]))
    assert both.queries.tolist() == [[0.5, 0, 0, 0.5]]


def test_the_batch_does_not_depend_on_how_often_the_run_saw_two_variables(random_model: Subject):
    rare = Split(SMALL, replace(random_model.split.config, two_variable_frequency=0.1))
    batches = [
        gradient.training_run(replace(random_model, split=split)).sequences for split in (random_model.split, rare)
    ]
    np.testing.assert_array_equal(batches[0].tokens, batches[1].tokens)
    assert len(batches[0]) == random_model.data.gradient


def test_the_compiled_model_is_pulled_to_the_identity_by_right_answers_alone():
    subject = compiled_subject()
    assert gradient.pull_argmax(subject).value == 1
    assert gradient.pull_z(subject).value > 5
    assert gradient.shuffled_pull_z(subject).value < 2


def test_a_model_that_adds_the_negatives_is_pulled_away_from_it():
    """Its logits are turned upside down, so attention to the right constants only hurts."""
    parameters = compiled_parameters()
    parameters["unembed.W_U"] = -parameters["unembed.W_U"]
    subject = Subject(parameters, SPLIT, DATA)
    assert gradient.pull_z(subject).value < -2


@pytest.fixture(scope="module")
def stages() -> dict[str, Subject]:
    """A model that does nothing, one that adds but does not bind (blocks.0 writes nothing), and a finished one."""
    nothing = Subject({name: 0 * weight for name, weight in compiled_parameters().items()}, SPLIT, DATA)
    return {"nothing": nothing, "adds": compiled_subject(W_V0=torch.zeros(D, D)), "binds": compiled_subject()}


def test_only_checkpoints_that_add_and_do_not_bind_yet_count(stages: dict[str, Subject]):
    run = TrajectorySubject((0, 10, 20), (stages["nothing"], stages["adds"], stages["binds"]))
    measured = gradient.least_pull_z_before_binding(run)
    assert measured.value == pytest.approx(gradient.own_pull_z(stages["adds"]).value)
    assert measured.note == "least at step 10 of 1 checkpoints"
    assert measured.value > 2
    assert gradient.least_pull_argmax_before_binding(run).value > 0.5


def test_the_least_of_several_checkpoints_is_named(stages: dict[str, Subject]):
    half = compiled_subject(W_V0=torch.zeros(D, D), W_V1=0.5 * compiled_parameters()["blocks.1.attn.W_V"][0])
    run = TrajectorySubject((0, 10, 20), (stages["adds"], half, stages["binds"]))
    values = {step: gradient.own_pull_z(subject).value for step, subject in ((0, stages["adds"]), (10, half))}
    least = min(values, key=values.__getitem__)
    measured = gradient.least_pull_z_before_binding(run)
    assert (measured.value, measured.note) == (values[least], f"least at step {least} of 2 checkpoints")


def test_binding_of_one_side_ends_the_wait(stages: dict[str, Subject]):
    """A model that binds the left operand alone answers 1L, and neither 1R nor 2-var."""
    looking, matching = (compiled_parameters()[f"blocks.{layer}.attn.W_K"][0] for layer in (0, 1))
    looking[POSITIONS.start + TASK.right_position, POSITIONS.start + TASK.equals_position] = 0
    matching[CARRIED, CARRIED] /= 2  # the query carries all of one variable instead of half of each
    left_alone = compiled_subject(W_K0=looking, W_K1=matching)
    accuracy = {kind: full_prefix_accuracy(left_alone, kind).value for kind in KINDS}
    assert accuracy[Kind.LEFT] == 1, accuracy
    assert max(accuracy[Kind.RIGHT], accuracy[Kind.TWO]) < gradient.BINDS, accuracy
    run = TrajectorySubject((0, 10, 20, 30), (stages["adds"], left_alone, stages["adds"], stages["binds"]))
    assert list(gradient.pulls_before_binding(run)) == [0]


def test_a_run_that_never_adds_has_no_value_and_one_without_such_checkpoints_no_meaning(stages: dict[str, Subject]):
    never = TrajectorySubject((0, 10), (stages["nothing"], stages["nothing"]))
    assert np.isnan(gradient.least_pull_z_before_binding(never).value)
    at_once = TrajectorySubject((0, 10), (stages["nothing"], stages["binds"]))
    with pytest.raises(NotApplicable, match="no checkpoint adds already and does not bind yet"):
        gradient.least_pull_z_before_binding(at_once)
