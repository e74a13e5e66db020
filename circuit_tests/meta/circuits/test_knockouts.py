"""Knock-outs on the model compiled by hand, where it is known which kinds need an edge, and against hooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from aa_core.circuits import knockouts
from aa_core.circuits.causal import causal_run
from aa_core.circuits.knockouts import Ablation, Edge
from aa_core.circuits.subject import Subject
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.task.problems import parse_problem, sequences_from_problems
from aa_core.task.sampling import KINDS, Kind
from circuit_tests.meta.compiled_model import RANDOM, TASK

NEEDED_BY = {
    Edge.CONSTANT_TO_VARIABLE: {Kind.LEFT, Kind.RIGHT, Kind.TWO},
    Edge.EQUALS_TO_OPERANDS: {Kind.LEFT, Kind.RIGHT, Kind.TWO},
    Edge.EQUALS_TO_LEFT: {Kind.LEFT, Kind.TWO},
    Edge.EQUALS_TO_RIGHT: {Kind.RIGHT, Kind.TWO},
    Edge.EQUALS_TO_VALUES: set(KINDS),
}


@pytest.mark.parametrize("ablation", Ablation)
@pytest.mark.parametrize("edge", Edge)
def test_only_the_kinds_that_need_an_edge_fail_without_it(compiled: Subject, edge: Edge, ablation: Ablation):
    accuracy = {kind: knockouts.cut_accuracy(compiled, kind, edge, ablation).value for kind in KINDS}
    for kind in KINDS:
        if kind in NEEDED_BY[edge]:
            assert accuracy[kind] < 0.6, accuracy
        elif edge is Edge.CONSTANT_TO_VARIABLE or kind is Kind.ZERO or ablation is not Ablation.ZERO:
            # Without one operand at all, `=` attends twice as much to the other one, and then to one constant alone.
            assert accuracy[kind] == 1, accuracy


def test_ends_of_edges_of_a_problem():
    sequences = sequences_from_problems(TASK, [parse_problem(TASK, "_ c=5, b=2, _ _ _ c+3")])
    left, right, equals = TASK.n_ctx - 3, TASK.n_ctx - 2, TASK.n_ctx - 1
    ends = {edge: knockouts.edges_of(TASK, sequences, edge) for edge in Edge}
    assert {edge: (each.layer, each.queries.tolist(), each.keys.tolist()) for edge, each in ends.items()} == {
        Edge.CONSTANT_TO_VARIABLE: (0, [[2, 4]], [[1, 3]]),
        Edge.EQUALS_TO_OPERANDS: (0, [[equals, equals]], [[left, right]]),
        Edge.EQUALS_TO_LEFT: (0, [[equals]], [[left]]),
        Edge.EQUALS_TO_RIGHT: (0, [[equals]], [[right]]),
        Edge.EQUALS_TO_VALUES: (1, [[equals, equals]], [[2, right]]),
    }


def hooked_correct(subject: Subject, kind: Kind, edge: Edge, ablation: Ablation) -> np.ndarray:
    """The same cut edge by edge: patterns by a hook, vectors by what they change in the attention's output."""
    sequences = causal_run(subject, kind).sequences
    edges = knockouts.edges_of(TASK, sequences, edge)
    model = HookedAssignAndAdd(TASK, RANDOM, subject.parameters)
    name = f"blocks.{edges.layer}"
    tokens = torch.from_numpy(sequences.tokens)
    with torch.no_grad():
        _, cache = model.run_with_cache(tokens)
        carried = cache[f"{name}.attn.hook_v"][:, :, 0] @ subject.parameters[f"{name}.attn.W_O"][0]
        n, n_edges = edges.keys.shape
        vectors = torch.stack([carried[row, edges.keys[row]] for row in range(n)])
        other = {
            Ablation.RESAMPLE: torch.cat([vectors[-1:], vectors[:-1]]),
            Ablation.MEAN: vectors.mean(0, keepdim=True).expand(n, -1, -1),
        }

        def cut_weights(pattern: Tensor, hook: object) -> Tensor:
            new = pattern.clone()
            for row in range(n):
                for query, key in zip(edges.queries[row], edges.keys[row], strict=True):
                    new[row, 0, query, key] = 0
            return new / new.sum(-1, keepdim=True)

        def exchange_vectors(out: Tensor, hook: object) -> Tensor:
            new = out.clone()
            for row in range(n):
                for index in range(n_edges):
                    query, key = edges.queries[row, index], edges.keys[row, index]
                    weight = cache[f"{name}.attn.hook_pattern"][row, 0, query, key]
                    new[row, query] += weight * (other[ablation][row, index] - vectors[row, index])
            return new

        hooks: list[Any] = (
            [(f"{name}.attn.hook_pattern", cut_weights)]
            if ablation is Ablation.ZERO
            else [(f"{name}.hook_attn_out", exchange_vectors)]
        )
        return model.run_with_hooks(tokens, fwd_hooks=hooks)[:, -1].argmax(-1).numpy() == sequences.answers


@pytest.mark.parametrize("ablation", Ablation)
@pytest.mark.parametrize("edge", Edge)
def test_cuts_are_those_that_hooks_make(random_model: Subject, edge: Edge, ablation: Ablation):
    for kind in (Kind.LEFT, Kind.TWO):
        run = causal_run(random_model, kind)
        edges = knockouts.edges_of(TASK, run.sequences, edge)
        cut = knockouts._cut0 if edges.layer == 0 else knockouts._cut1
        np.testing.assert_array_equal(
            cut(random_model, run, edges, ablation).numpy(), hooked_correct(random_model, kind, edge, ablation)
        )
        clean = run.correct.mean()
        assert clean < 0.5, "its answers are wrong mostly, so equality is about which ones"
