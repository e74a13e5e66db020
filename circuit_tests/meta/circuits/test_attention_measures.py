"""Measures of attention, of the identity block and of shared vectors, against slow readings of the hooked model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from aa_core.circuits.attention import (
    equals_operand_weights,
    equals_smaller_weight,
    equals_top_two,
    previous_token_argmax,
    previous_token_weight,
    previous_token_weight_by_position,
    previous_token_weight_by_variable,
)
from aa_core.circuits.identity import (
    diagonal_argmax,
    diagonal_z,
    identity_block,
    identity_energy,
    identity_least_margin,
    identity_margin,
    identity_z,
)
from aa_core.circuits.representation import (
    TWIN,
    distinct_pairs,
    mismatched_cosine,
    paired_sequences,
    twin_cosine,
    twin_retrieval,
)
from aa_core.circuits.subject import Subject
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.task.config import TaskConfig
from aa_core.task.sampling import KINDS, POOLS, Kind
from aa_core.task.sequences import Sequences
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.compiled_model import RANDOM, SPLIT, TASK


def cached(subject: Subject, sequences: Sequences, name: str) -> np.ndarray:
    """An activation of the hooked model on sequences."""
    model = HookedAssignAndAdd(TASK, RANDOM, subject.parameters)
    _, cache = model.run_with_cache(torch.from_numpy(sequences.tokens))
    return cache[name].detach().numpy()


def weights_on_the_token_before(subject: Subject, sequences: Sequences) -> list[list[tuple[int, float, bool]]]:
    """For each sequence and each assigned constant: its position, its weight on the one before, and if that is most."""
    patterns = cached(subject, sequences, "blocks.0.attn.hook_pattern")[:, 0]
    rows = []
    for tokens, pattern in zip(sequences.tokens, patterns, strict=True):
        at = [p for p in range(1, TASK.prefix_length) if tokens[p] < TASK.modulus]
        rows.append([(p, float(pattern[p, p - 1]), bool(pattern[p].argmax() == p - 1)) for p in at])
    return rows


def test_previous_token_head(random_model: Subject) -> None:
    runs = [random_model.full_prefix(kind).sequences for kind in KINDS]
    rows = [row for sequences in runs for row in weights_on_the_token_before(random_model, sequences)]
    most = [is_most for row in rows for _, _, is_most in row]
    assert previous_token_argmax(random_model).value == pytest.approx(np.mean(most))
    assert 0 < np.mean(most) < 1, "the model must tell positions apart"
    means = [np.mean([weight for _, weight, _ in row]) for row in rows]
    assert previous_token_weight(random_model).value == pytest.approx(np.mean(means), abs=1e-6)

    by_letter: dict[int, list[float]] = {}
    for sequences in runs:
        for tokens, row in zip(sequences.tokens, weights_on_the_token_before(random_model, sequences), strict=True):
            for position, weight, _ in row:
                by_letter.setdefault(int(tokens[position - 1]), []).append(weight)
    assert len(by_letter) == TASK.n_variables
    least = min(by_letter, key=lambda token: np.mean(by_letter[token]))
    measured = previous_token_weight_by_variable(random_model)
    assert measured.value == pytest.approx(np.mean(by_letter[least]), abs=1e-6)
    assert measured.note == f"least for {TASK.variables[least - TASK.first_variable_token]}"


def test_previous_token_head_at_its_worst_position(random_model: Subject) -> None:
    by_position: dict[int, list[float]] = {}
    for name in POOLS:
        run = random_model.pool(name)
        assert run is not None
        for row in weights_on_the_token_before(random_model, run.sequences):
            for position, weight, _ in row:
                by_position.setdefault(position, []).append(weight)
    least = min(by_position, key=lambda position: np.mean(by_position[position]))
    measured = previous_token_weight_by_position(random_model)
    assert measured.value == pytest.approx(np.mean(by_position[least]), abs=1e-6)
    assert measured.note == f"least at position {least}"


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_what_equals_attends_to(random_model: Subject, layer: int, kind: Kind) -> None:
    sequences = random_model.full_prefix(kind).sequences
    rows = cached(random_model, sequences, f"blocks.{layer}.attn.hook_pattern")[:, 0, -1]
    pairs, top = [], []
    for tokens, row in zip(sequences.tokens, rows, strict=True):
        places = [TASK.left_position, TASK.right_position]
        if layer == 1:  # a variable's constant stands after it in the prefix
            written = list(tokens[: TASK.prefix_length])
            places = [p if tokens[p] < TASK.modulus else written.index(tokens[p]) + 1 for p in places]
        pairs.append([row[place] for place in places])
        top.append(set(np.argsort(row)[-2:]) == set(places))
    assert equals_operand_weights(random_model, layer, kind) == pytest.approx(np.array(pairs), abs=1e-4)
    assert equals_smaller_weight(random_model, layer, kind).value == pytest.approx(
        np.min(pairs, axis=1).mean(), abs=1e-4
    )
    assert equals_top_two(random_model, layer, kind).value == np.mean(top)


def test_identity_block_is_a_score_between_carried_variables(random_model: Subject) -> None:
    p = {name: weight.double().numpy() for name, weight in random_model.parameters.items()}
    carry = p["blocks.0.attn.W_V"][0] @ p["blocks.0.attn.W_O"][0]
    letters = p["embed.W_E"][TASK.first_variable_token :]
    expected = np.empty((TASK.n_variables, TASK.n_variables))
    for i, query in enumerate(letters):
        for j, key in enumerate(letters):
            q, k = query @ carry @ p["blocks.1.attn.W_Q"][0], key @ carry @ p["blocks.1.attn.W_K"][0]
            expected[i, j] = q @ k / RANDOM.d_head**0.5
    assert identity_block(random_model) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert not np.allclose(expected, expected.T), "rows must differ from columns"
    assert identity_z(random_model).value == pytest.approx(diagonal_z(expected).value, rel=1e-3)


BLOCK = np.array([[4.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 1.0, 4.0]])


def test_measures_of_a_known_block(random_model: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    off = np.array([1.0, 0.0, 0.0, 2.0, 0.0, 1.0])
    assert diagonal_z(BLOCK).value == pytest.approx((3.0 - off.mean()) / off.std())
    assert diagonal_z(-BLOCK).value == -diagonal_z(BLOCK).value
    letters = dataclasses.replace(
        random_model, split=Split(TaskConfig(11, 3, 2, 8), SplitConfig(never_left="", never_right=""))
    )
    hits = diagonal_argmax(letters, BLOCK)
    assert (hits.value, hits.note) == (pytest.approx(2 / 3), "not for b")
    monkeypatch.setattr("aa_core.circuits.identity.identity_block", lambda subject: BLOCK)
    margins = np.array([3.0, -1.0, 3.0]) / off.std()
    assert identity_margin(letters).value == pytest.approx(margins.mean())
    least = identity_least_margin(letters)
    assert (least.value, least.note) == (pytest.approx(margins.min()), "least for b")
    centred = BLOCK - BLOCK.mean(1, keepdims=True) - BLOCK.mean(0) + BLOCK.mean()
    assert identity_energy(letters).value == pytest.approx((np.diag(centred) ** 2).sum() / (centred**2).sum())


@pytest.mark.parametrize("kind", [Kind.LEFT, Kind.RIGHT, Kind.TWO])
def test_vectors_are_compared_by_operand_values(random_model: Subject, kind: Kind) -> None:
    data = dataclasses.replace(random_model.data, pairs=20)
    subject = dataclasses.replace(random_model, data=data)
    own, twin = (paired_sequences(SPLIT, name, data) for name in (kind, TWIN))
    assert own.values.tolist() == twin.values.tolist() == distinct_pairs(SPLIT, 20, data.seed).tolist()
    assert not np.array_equal(own.tokens[:, : TASK.prefix_length], twin.tokens[:, : TASK.prefix_length])
    a, b = (cached(subject, each, "blocks.1.hook_resid_mid")[:, -1].astype(float) for each in (own, twin))

    def cosine(x: np.ndarray, y: np.ndarray) -> float:
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    for centred in (False, True):
        x, y = (a - a.mean(0), b - b.mean(0)) if centred else (a, b)
        matched = np.mean([cosine(x[i], y[i]) for i in range(20)])
        others = np.mean([cosine(x[i], y[i - 1]) for i in range(20)])
        assert twin_cosine(subject, kind, centred=centred).value == pytest.approx(matched, abs=1e-4)
        assert mismatched_cosine(subject, kind, centred=centred).value == pytest.approx(others, abs=1e-4)
        assert abs(matched - others) > 1e-3, "the two must differ here"
    x, y = a - a.mean(0), b - b.mean(0)
    nearest = [max(range(20), key=lambda j: cosine(x[i], y[j])) == i for i in range(20)]
    assert twin_retrieval(subject, kind).value == pytest.approx(np.mean(nearest))
