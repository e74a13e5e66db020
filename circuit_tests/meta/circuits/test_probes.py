"""Probes on features whose information is known, and on the model compiled by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from aa_core.circuits import probes
from aa_core.circuits.subject import Subject
from circuit_tests.meta.compiled_model import POSITIONS, SHARP, TASK, D, compiled_parameters, compiled_subject

CHANCE = 1 / TASK.n_variables


@pytest.fixture(scope="module")
def subject() -> Subject:
    return compiled_subject()


def looking_back(steps: int) -> Subject:
    """The compiled model with blocks.0 looking `steps` back in the prefix."""
    k0 = compiled_parameters()["blocks.0.attn.W_K"][0]
    k0[POSITIONS.start : POSITIONS.start + TASK.prefix_length] = 0
    for position in range(steps, TASK.prefix_length):
        k0[POSITIONS.start + position - steps, POSITIONS.start + position] = 1
    return compiled_subject(W_K0=k0)


def test_ridge_solves_the_penalised_least_squares_problem():
    rng = torch.Generator().manual_seed(0)
    x, y, others = (torch.randn(shape, generator=rng).double() for shape in ((50, 4), (50, 3), (7, 4)))
    x, y = x + 3, y - 2
    penalty = probes.RIDGE * ((x - x.mean(0)) ** 2).sum(0).mean()
    weights, intercept = torch.zeros(4, 3).double().requires_grad_(), torch.zeros(3).double().requires_grad_()
    optimizer = torch.optim.LBFGS([weights, intercept], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-16)

    def objective() -> torch.Tensor:
        optimizer.zero_grad()
        loss = ((x @ weights + intercept - y) ** 2).sum() + penalty * (weights**2).sum()
        loss.backward()
        return loss

    optimizer.step(objective)
    expected = (others @ weights + intercept).detach()
    torch.testing.assert_close(probes.ridge_scores(x, y, others), expected, atol=1e-6, rtol=1e-6)


def test_ridge_does_not_depend_on_the_scale_of_features():
    rng = torch.Generator().manual_seed(1)
    x, y, others = (torch.randn(shape, generator=rng) for shape in ((50, 4), (50, 3), (7, 4)))
    torch.testing.assert_close(probes.ridge_scores(x, y, others), probes.ridge_scores(100 * x, y, 100 * others))


def test_features_that_are_all_zero_give_the_mean_label():
    labels = torch.tensor([[1.0, 0], [1, 0], [0, 1]])
    scores = probes.ridge_scores(torch.zeros(3, 2), labels, torch.zeros(1, 2))
    torch.testing.assert_close(scores, torch.tensor([[2 / 3, 1 / 3]]).double())


def test_variables_are_at_their_constants_after_blocks_0_alone(subject: Subject):
    assert probes.variable_at_constant(subject, layer=1).value == 1
    assert probes.variable_at_constant(subject, layer=0).value < 2 * CHANCE


@pytest.mark.parametrize("steps", [0, 2])
def test_a_head_that_looks_elsewhere_does_not_bring_the_variable(steps: int):
    assert probes.variable_at_constant(looking_back(steps), layer=1).value < 0.5


def test_the_probed_variable_is_the_one_before_the_constant(subject: Subject):
    stream = subject.once(probes.probe_streams).scored
    at, variable = probes._constant_and_variable(subject, stream)
    rows = np.arange(len(at))
    assert (stream.sequences.tokens[rows, at] < TASK.modulus).all()
    assert (at < TASK.prefix_length).all()
    np.testing.assert_array_equal(stream.sequences.tokens[rows, at - 1], TASK.first_variable_token + variable)
    assert len(np.unique(at)) == TASK.max_assignments, "every assignment gets its turn"


def test_values_appear_before_the_mlp_and_their_sum_after_it(subject: Subject):
    pair = {place: probes.value_pair(subject, place).value for place in probes.PLACES}
    total = {place: probes.answer(subject, place).value for place in probes.PLACES}
    assert pair["blocks.1.hook_resid_pre"] < 0.15, pair
    assert pair["blocks.1.hook_resid_mid"] == 1, pair
    assert total["blocks.1.hook_resid_pre"] < 0.4, total
    assert total["blocks.1.hook_resid_mid"] < 0.4, total
    assert total["blocks.1.hook_resid_post"] == 1, total


def test_values_of_the_wrong_constants_are_not_those_of_the_operands():
    shifted = torch.eye(D).roll(1, 0) * SHARP * D**0.5  # each variable asks for another one's constant
    assert probes.value_pair(compiled_subject(W_Q1=shifted), "blocks.1.hook_resid_mid").value < 0.3


def test_probes_are_scored_on_sequences_that_they_were_not_fitted_on(subject: Subject):
    fitted, scored = subject.once(probes.probe_streams)
    seen = {row.tobytes() for row in fitted.sequences.tokens}
    assert not any(row.tobytes() in seen for row in scored.sequences.tokens)
    assert (len(fitted.sequences), len(scored.sequences)) == (subject.data.probe, subject.data.full_prefix)
