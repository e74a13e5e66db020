"""The circuit by itself on the model compiled by hand, with other paths added to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from aa_core.circuits.accuracy import full_prefix_accuracy
from aa_core.circuits.causal import causal_run, constant_positions
from aa_core.circuits.isolated_circuit import Part, _query_and_keys, circuit_accuracy
from aa_core.circuits.subject import Subject
from aa_core.model.config import ModelConfig
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.model.parameters import initial_parameters
from aa_core.task.sampling import KINDS, Kind
from circuit_tests.meta.compiled_model import (
    CARRIED,
    CONSTANTS,
    DATA,
    POSITIONS,
    SPLIT,
    TASK,
    VARIABLES,
    WAVES,
    compiled_parameters,
)

NEEDED_BY = {
    Part.VARIABLE_IN_KEYS: {Kind.LEFT, Kind.RIGHT, Kind.TWO},
    Part.OPERANDS_IN_QUERY: {Kind.LEFT, Kind.RIGHT, Kind.TWO},
    Part.VALUES: set(KINDS),
}
MODEL = ModelConfig(d_model=24, d_head=24, d_mlp=48)


@pytest.fixture(scope="module")
def compiled() -> Subject:
    return Subject(compiled_parameters(), SPLIT, DATA)


@pytest.mark.parametrize("kind", KINDS)
def test_the_circuit_is_all_that_the_compiled_model_has(compiled: Subject, kind: Kind):
    assert circuit_accuracy(compiled, kind).value == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", Part)
def test_only_the_kinds_that_need_a_part_fail_without_it(compiled: Subject, part: Part, kind: Kind):
    accuracy = circuit_accuracy(compiled, kind, part).value
    assert accuracy < 0.6 if kind in NEEDED_BY[part] else accuracy == 1


def class_from_equals(p: dict[str, Tensor]) -> None:
    """Past the MLP: the token `=` says 0."""
    p["unembed.W_U"][TASK.equals_token, 0] = 1000


def waves_of_positions(p: dict[str, Tensor]) -> None:
    """Through values: positions arrive as waves, too."""
    p["blocks.1.attn.W_V"][0, POSITIONS, WAVES] = torch.randn(TASK.n_ctx, TASK.modulus - 1, generator=_generator()) * 5


def waves_at_equals(p: dict[str, Tensor]) -> None:
    """Past blocks.1: `=` has waves of its own, which the MLP adds."""
    p["embed.W_E"][TASK.equals_token, WAVES] = torch.randn(TASK.modulus - 1, generator=_generator()) * 5


def carried_values(p: dict[str, Tensor]) -> None:
    """Through both OV circuits: blocks.0 writes waves, which blocks.1 carries on."""
    p["blocks.0.attn.W_V"][0, VARIABLES, WAVES] = torch.randn(
        TASK.n_variables, TASK.modulus - 1, generator=_generator()
    )
    p["blocks.1.attn.W_V"][0, WAVES, WAVES] = torch.eye(TASK.modulus - 1) * 5


SIDE_PATHS = [class_from_equals, waves_of_positions, waves_at_equals, carried_values]


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("add_path", SIDE_PATHS)
def test_other_paths_mislead_the_model_but_not_the_circuit(add_path: Callable[[dict[str, Tensor]], None]):
    parameters = compiled_parameters()
    add_path(parameters)
    subject = Subject(parameters, SPLIT, DATA)
    assert full_prefix_accuracy(subject, Kind.TWO).value < 0.6
    assert circuit_accuracy(subject, Kind.TWO).value == 1


def test_without_carried_variables_the_circuit_only_adds_constants():
    parameters = compiled_parameters()
    parameters["blocks.0.attn.W_V"][0, :, CARRIED] = 0
    subject = Subject(parameters, SPLIT, DATA)
    assert circuit_accuracy(subject, Kind.LEFT).value < 0.6
    assert circuit_accuracy(subject, Kind.ZERO).value == 1


@pytest.mark.parametrize("without", [None, Part.VARIABLE_IN_KEYS, Part.OPERANDS_IN_QUERY])
def test_what_the_query_and_the_keys_are_made_of(without: Part | None):
    """Term by term on a random model, with terms of the sequence before for all that is resampled."""
    parameters = initial_parameters(TASK, MODEL, 2.5, 0)
    subject = Subject(parameters, SPLIT, DATA)
    run = causal_run(subject, Kind.LEFT)
    query, keys = _query_and_keys(subject, run, without)
    tokens = run.sequences.tokens
    with torch.no_grad():
        _, cache = HookedAssignAndAdd(TASK, MODEL, parameters).run_with_cache(torch.from_numpy(tokens))
    pattern, written = cache["blocks.0.attn.hook_pattern"][:, 0], cache["blocks.0.hook_attn_out"]
    embeddings, places = parameters["embed.W_E"], parameters["pos_embed.W_pos"]
    ov0 = parameters["blocks.0.attn.W_V"][0] @ parameters["blocks.0.attn.W_O"][0]

    def carried(row: int, at: int, source: int, *, position: bool = True) -> Tensor:
        vector = embeddings[tokens[row, source]] + position * places[source]
        return pattern[row, at, source] * (vector @ ov0)

    left, right, equals = TASK.left_position, TASK.right_position, TASK.equals_position
    for row in (0, 1, 7):  # the sequence before the first is the last
        other = row - 1
        chosen = other if without is Part.OPERANDS_IN_QUERY else row
        operands = [sum(carried(each, equals, at) for at in (left, right)) for each in (chosen, other)]
        expected = embeddings[tokens[row, -1]] + places[-1] + operands[0] + written[other, -1] - operands[1]
        torch.testing.assert_close(query[row], expected, rtol=1e-4, atol=1e-4)

        for at in range(TASK.n_ctx):
            own = embeddings[tokens[row, at]] + places[at]
            if at in (left, right):
                torch.testing.assert_close(keys[row, at], own + written[row, at], rtol=1e-4, atol=1e-4)
            elif tokens[row, at] >= TASK.modulus:
                torch.testing.assert_close(keys[row, at], own + written[other, at], rtol=1e-4, atol=1e-4)
            else:
                # A full prefix: the constants of all sequences are at the same places.
                chosen = other if without is Part.VARIABLE_IN_KEYS else row
                variable = [carried(each, at, at - 1, position=False) for each in (chosen, other)]
                symbols = keys[row, at] - (variable[0] + written[other, at] - variable[1])
                pairs = (embeddings[: TASK.modulus, None] + places[: TASK.prefix_length]).flatten(0, 1)
                assert (pairs - symbols).norm(dim=1).min() < 1e-3, "some constant at some place of the prefix"


def test_constants_and_places_in_keys_are_drawn_anew(compiled: Subject):
    run = causal_run(compiled, Kind.TWO)
    _, keys = _query_and_keys(compiled, run, None)
    rows, at = torch.arange(len(keys))[:, None], torch.from_numpy(constant_positions(TASK, run.sequences))
    drawn = keys[rows, at]
    constants, places = drawn[..., CONSTANTS].argmax(-1), drawn[..., POSITIONS].argmax(-1)
    own = torch.from_numpy(run.sequences.tokens)[rows, at]
    assert (constants == own).float().mean() < 0.2
    assert (places == at).float().mean() < 0.3
    assert len(constants.unique()) == TASK.modulus
    assert len(places.unique()) == TASK.prefix_length
