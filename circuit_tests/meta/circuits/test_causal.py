"""Exchanges on the model compiled by hand, where each must bring about its counterfactual, and against hooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from aa_core.circuits import causal
from aa_core.circuits.subject import Subject
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.statistics import Measurement
from aa_core.task.problems import problem_from_tokens
from aa_core.task.sampling import Kind
from circuit_tests.meta.compiled_model import RANDOM, SPLIT, TASK, D, compiled_subject

WITH_VARIABLES = [Kind.LEFT, Kind.RIGHT, Kind.TWO]
EXCHANGES = {
    "binding": causal.binding_swapped,
    "variable": causal.variable_swapped,
    "query": causal.query_patched,
    "query at `=`": partial(causal.query_patched, equals_alone=True),
    "value": causal.value_replaced,
}


@pytest.mark.parametrize("kind", WITH_VARIABLES)
def test_what_is_exchanged_is_what_the_problem_says(compiled: Subject, kind: Kind):
    sequences = causal.causal_run(compiled, kind).sequences
    drawn = causal.exchange(compiled, kind, sequences)
    assert set(drawn.side) == {Kind.LEFT: {0}, Kind.RIGHT: {1}, Kind.TWO: {0, 1}}[kind]
    for row, (side, x_at, y_at, z_at, counterfactual) in enumerate(zip(*drawn, strict=True)):
        tokens = sequences.tokens[row]
        problem = problem_from_tokens(TASK, tokens)
        x, y, z = (TASK.variables[tokens[at - 1] - TASK.first_variable_token] for at in (x_at, y_at, z_at))
        values = dict(problem.assignments)
        assert [values[x], values[y], values[z]] == [tokens[x_at], tokens[y_at], tokens[z_at]]
        assert (problem.left, problem.right)[side] == x
        assert not {y, z} & {problem.left, problem.right}
        assert y != z
        swapped = tuple((name, {x: values[y], y: values[x]}.get(name, value)) for name, value in problem.assignments)
        assert counterfactual == replace(problem, assignments=swapped).answer(TASK)
        allowed = {TASK.variables[index] for index in SPLIT.allowed_variables(side)}
        assert y in allowed or not allowed & set(values) - {problem.left, problem.right}


@pytest.mark.parametrize("kind", WITH_VARIABLES)
@pytest.mark.parametrize("name", EXCHANGES)
def test_every_exchange_brings_about_its_counterfactual(compiled: Subject, name: str, kind: Kind):
    assert EXCHANGES[name](compiled, kind).value == 1


@pytest.mark.parametrize("kind", WITH_VARIABLES)
def test_controls_do_not(compiled: Subject, kind: Kind):
    assert causal.binding_swapped(compiled, kind, counterfactual=False).value == 0
    assert causal.unqueried_binding_swapped(compiled, kind).value == 1
    assert causal.random_direction_added(compiled, kind).value < 0.1


@pytest.mark.parametrize("name", ["binding", "variable", "query", "query at `=`"])
def test_without_binding_nothing_follows(name: str):
    unbound = compiled_subject(W_V0=torch.zeros(D, D))
    assert max(EXCHANGES[name](unbound, kind).value for kind in WITH_VARIABLES) < 0.5


def test_random_vectors_have_the_norms_of_the_ones_that_they_replace():
    vectors = torch.randn(2, 5, 40, generator=torch.Generator().manual_seed(0)) * torch.arange(1, 6)[:, None]
    noise = causal._random_like(vectors, seed=1)
    torch.testing.assert_close(noise.norm(dim=-1), vectors.norm(dim=-1))
    assert torch.cosine_similarity(noise, vectors, dim=-1).abs().max() < 0.6


Hooks = list[Any]


def hooked_agreement(subject: Subject, kind: Kind, hooks: Hooks, answers: np.ndarray) -> float:
    model = HookedAssignAndAdd(TASK, RANDOM, subject.parameters)
    with torch.no_grad():
        tokens = torch.from_numpy(causal.causal_run(subject, kind).sequences.tokens)
        return float((model.run_with_hooks(tokens, fwd_hooks=hooks)[:, -1].argmax(-1).numpy() == answers).mean())


def assert_hooks_agree(subject: Subject, kind: Kind, hooks: Hooks, measure: Callable[[Subject, Kind], Measurement]):
    """On a random model the answers say little, but they depend on every place that is edited."""
    drawn = causal.exchange(subject, kind, causal.causal_run(subject, kind).sequences)
    assert hooked_agreement(subject, kind, hooks, drawn.counterfactual) == measure(subject, kind).value


@pytest.mark.parametrize("kind", WITH_VARIABLES)
def test_exchanges_of_blocks_0_are_those_that_hooks_make(random_model: Subject, kind: Kind):
    sequences = causal.causal_run(random_model, kind).sequences
    drawn = causal.exchange(random_model, kind, sequences)
    asked = sequences.tokens.copy()
    for row in range(len(asked)):
        asked[row, (TASK.left_position, TASK.right_position)[drawn.side[row]]] = asked[row, drawn.y_at[row] - 1]
    model = HookedAssignAndAdd(TASK, RANDOM, random_model.parameters)
    with torch.no_grad():
        _, donor = model.run_with_cache(torch.from_numpy(asked))

    def swap(out: Tensor, hook: object) -> Tensor:
        new = out.clone()
        for row, (x, y) in enumerate(zip(drawn.x_at, drawn.y_at, strict=True)):
            new[row, x], new[row, y] = out[row, y], out[row, x]
        return new

    def patch(out: Tensor, hook: object) -> Tensor:
        new = out.clone()
        new[:, -3:] = donor["blocks.0.hook_attn_out"][:, -3:]
        return new

    assert_hooks_agree(random_model, kind, [("blocks.0.hook_attn_out", swap)], causal.binding_swapped)
    assert_hooks_agree(random_model, kind, [("blocks.0.hook_attn_out", patch)], causal.query_patched)


@pytest.mark.parametrize("kind", WITH_VARIABLES)
def test_exchanges_of_single_vectors_are_those_that_hooks_make(random_model: Subject, kind: Kind):
    sequences = causal.causal_run(random_model, kind).sequences
    drawn = causal.exchange(random_model, kind, sequences)
    embeddings = random_model.parameters["embed.W_E"]
    v0, o0, v1 = (random_model.parameters[f"blocks.{name}"][0] for name in ("0.attn.W_V", "0.attn.W_O", "1.attn.W_V"))
    model = HookedAssignAndAdd(TASK, RANDOM, random_model.parameters)
    with torch.no_grad():
        _, cache = model.run_with_cache(torch.from_numpy(sequences.tokens))

    def variables(out: Tensor, hook: object) -> Tensor:
        new = out.clone()
        for row, (x, y) in enumerate(zip(drawn.x_at, drawn.y_at, strict=True)):
            difference = (embeddings[sequences.tokens[row, y - 1]] - embeddings[sequences.tokens[row, x - 1]]) @ v0 @ o0
            new[row, x] += cache["blocks.0.attn.hook_pattern"][row, 0, x, x - 1] * difference
            new[row, y] -= cache["blocks.0.attn.hook_pattern"][row, 0, y, y - 1] * difference
        return new

    def value(v: Tensor, hook: object) -> Tensor:
        new = v.clone()
        for row, (x, y) in enumerate(zip(drawn.x_at, drawn.y_at, strict=True)):
            new[row, x, 0] += (embeddings[sequences.tokens[row, y]] - embeddings[sequences.tokens[row, x]]) @ v1
        return new

    assert_hooks_agree(random_model, kind, [("blocks.0.hook_attn_out", variables)], causal.variable_swapped)
    assert_hooks_agree(random_model, kind, [("blocks.1.attn.hook_v", value)], causal.value_replaced)
