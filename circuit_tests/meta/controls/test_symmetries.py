"""Symmetries leave the model's function, every measured value and every verdict as they are."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.subject import DataConfig, Subject
from aa_core.claims.claim import Scope
from aa_core.claims.registry import CLAIMS, interval_alpha
from aa_core.claims.verification import verify
from aa_core.controls import CONTROLS, SYMMETRIES
from aa_core.controls.edits import invertible, orthogonal
from aa_core.controls.symmetries import neurons_rescaled, ov_basis_changed, qk_basis_changed, renaming
from aa_core.model.config import ModelConfig
from aa_core.model.parameters import Parameters, initial_parameters
from aa_core.model.symbol_space import forward, symbol_tables
from aa_core.statistics import Verdict
from aa_core.task.config import TaskConfig
from aa_core.task.split import Split, SplitConfig
from aa_core.task.training_data import training_batch
from circuit_tests.meta.compiled_model import compiled_subject
from circuit_tests.plugin import ModelUnderTest

TASK = TaskConfig(modulus=11, n_variables=6, max_assignments=2, n_ctx=8)
SPLIT = Split(TASK, SplitConfig(never_left="f", never_right="a"))
SEEDS = st.integers(0, 2**32)
SPREADS = st.floats(0, 1.5)
ROUNDING = 2e-4  # of the largest logit
EXACT = [name for name in SYMMETRIES if name != "letters-renamed"]


@pytest.fixture(scope="module")
def untrained() -> Subject:
    """A model at which every weight matters, with patterns far from uniform."""
    return Subject(initial_parameters(TASK, ModelConfig(16, 12, 32), 1.6, 0), SPLIT)


@pytest.fixture(scope="module")
def trained() -> Subject:
    """The compiled model with a little noise, so that no measured value rests on rounding alone, on little data."""
    good = compiled_subject()
    generator = torch.Generator().manual_seed(0)
    noisy = {
        name: weight + 0.01 * torch.randn(weight.shape, generator=generator) for name, weight in good.parameters.items()
    }
    data = DataConfig(full_prefix=50, pool=50, pairs=20, probe=150, gradient=128)
    return dataclasses.replace(good, parameters=noisy, data=data)


def logits(parameters: Parameters, tokens: Tensor) -> Tensor:
    return forward(symbol_tables(TASK, parameters), tokens).logits


def difference(subject: Subject, parameters: Parameters, letters: np.ndarray | None = None) -> float:
    """Largest difference in logits, as a share of the largest logit; `letters` renames those of the tokens."""
    tokens = torch.from_numpy(training_batch(SPLIT, 0, 0, 128).tokens)
    new_names = torch.arange(TASK.d_vocab)
    if letters is not None:
        new_names[TASK.first_variable_token :] = TASK.first_variable_token + torch.from_numpy(letters)
    old, new = logits(subject.parameters, tokens), logits(parameters, new_names[tokens])
    return float((new - old).abs().max() / old.abs().max())


# The function


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=15)
@given(seed=SEEDS)
def test_logits_stay(untrained: Subject, name: str, seed: int) -> None:
    assert difference(untrained, SYMMETRIES[name].build(untrained, seed)) < ROUNDING


@pytest.mark.parametrize("build", [qk_basis_changed, ov_basis_changed, neurons_rescaled])
@settings(max_examples=15)
@given(seed=SEEDS, spread=SPREADS)
def test_logits_stay_at_every_strength(
    untrained: Subject, build: Callable[[Subject, int, float], Parameters], seed: int, spread: float
) -> None:
    assert difference(untrained, build(untrained, seed, spread)) < ROUNDING


@settings(max_examples=15)
@given(seed=SEEDS)
def test_logits_stay_on_renamed_letters(untrained: Subject, seed: int) -> None:
    letters = renaming(untrained, seed)
    assert difference(untrained, SYMMETRIES["letters-renamed"].build(untrained, seed), letters) < ROUNDING


@settings(max_examples=15)
@given(seed=SEEDS)
def test_renaming_keeps_what_the_split_tells_apart(untrained: Subject, seed: int) -> None:
    letters = renaming(untrained, seed)
    assert sorted(letters) == list(range(TASK.n_variables))
    for side in (0, 1):
        assert {*letters[SPLIT.restricted_variables(side)]} == {*SPLIT.restricted_variables(side)}


@pytest.mark.parametrize("name", ["win-permuted", "qk1-rotated", "ov1-rows-shuffled", "variables-permuted"])
def test_what_is_no_symmetry_shows(untrained: Subject, name: str) -> None:
    assert difference(untrained, CONTROLS[name].build(untrained, 0)) > 100 * ROUNDING


@settings(max_examples=15)
@given(n=st.integers(1, 12), seed=SEEDS, spread=SPREADS)
def test_random_matrices(n: int, seed: int, spread: float) -> None:
    turn = orthogonal(n, np.random.default_rng(seed))
    torch.testing.assert_close(turn @ turn.T, torch.eye(n, dtype=torch.float64))
    stretches = torch.linalg.svdvals(invertible(n, np.random.default_rng(seed), spread))
    assert stretches.max() <= math.exp(spread) * (1 + 1e-9)
    assert stretches.min() >= math.exp(-spread) * (1 - 1e-9)


# Values and verdicts


def values(subject: Subject | TrajectorySubject) -> dict[tuple[str, str], float]:
    """Every measured value of the claims about a checkpoint."""
    claims = [claim for claim in CLAIMS if claim.scope is Scope.CHECKPOINT]
    return {
        (result.claim.id, finding.criterion.quantity): finding.measurement.value
        for result in verify(subject, claims, interval_alpha())
        for finding in result.findings
    }


def moved(old: dict[tuple[str, str], float], new: dict[tuple[str, str], float], tolerance: float) -> list[str]:
    """Values that differ by more than a tolerance, relative above 1."""
    assert old.keys() == new.keys(), "a symmetry changed which claims apply"
    changed = []
    for (claim, quantity), before in old.items():
        after = new[claim, quantity]
        # A random vector is another one in another basis; only its law stays.
        allowed = max(tolerance, 0.1) if "random vectors" in quantity else tolerance * max(1, abs(before))
        if not abs(after - before) <= allowed and not (math.isnan(before) and math.isnan(after)):
            changed.append(f"{claim}, {quantity}: {before} became {after}")
    return changed


@pytest.fixture(scope="module")
def measured(trained: Subject) -> dict[tuple[str, str], float]:
    return values(trained)


@pytest.mark.parametrize("name", EXACT)
def test_measured_values_stay(trained: Subject, measured: dict[tuple[str, str], float], name: str) -> None:
    changed = moved(measured, values(SYMMETRIES[name].apply(trained, 0)), 2e-3)
    assert not changed, "\n".join(changed)


def test_what_is_no_symmetry_shows_in_the_values(trained: Subject, measured: dict[tuple[str, str], float]) -> None:
    assert len(moved(measured, values(CONTROLS["qk1-rotated"].apply(trained, 0)), 2e-3)) > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", SYMMETRIES)
def test_symmetries_on_the_model_under_test(model_under_test: ModelUnderTest, name: str) -> None:
    """No verdict changes; values stay up to rounding, or under other names up to the draw of letters."""
    subject = model_under_test.subject
    last = subject.final
    turned = SYMMETRIES[name].apply(last, 0)
    changed = moved(values(last), values(turned), 0.05 if name == "letters-renamed" else 5e-3)
    assert not changed, "\n".join(changed)
    for before, after in zip(
        verify(last, CLAIMS, interval_alpha()), verify(turned, CLAIMS, interval_alpha()), strict=True
    ):
        assert before.verdict == after.verdict or Verdict.UNDECIDED in (before.verdict, after.verdict), before.claim.id
