"""Invariants of training: they hold for the code as it is, and each names the fault that is planted for it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from aa_core.gate.baseline import load_baseline
from aa_core.gate.comparison import Change, compare_runs
from aa_core.gate.config import GateConfig
from aa_core.gate.draws import reached_batch, read_tokens
from aa_core.gate.invariant import Outcome
from aa_core.gate.law import departure, uniform_departure
from aa_core.gate.registry import INVARIANTS, check_invariants, check_training
from aa_core.gate.setting import VARIED, Setting
from aa_core.gate.updates import SHORT_RUN
from aa_core.task.split import Split
from aa_core.task.training_data import training_batch
from aa_core.training.recipes import RECIPES
from circuit_tests.meta.gate.gate_faults import FAULTS, planted
from circuit_tests.meta.gate.gate_page import BASELINE, PAGE, current
from circuit_tests.meta.task.sampling_law import SPLITS

SMALL = dataclasses.replace(VARIED, n_batches=12)


def moved(outcomes: list[Outcome]) -> dict[str, str]:
    return {outcome.name: outcome.figures for outcome in outcomes if not outcome.ok}


def test_training_as_it_is_has_every_invariant():
    outcomes = check_invariants(VARIED, (*INVARIANTS, SHORT_RUN))
    assert not moved(outcomes)
    assert [outcome.name for outcome in outcomes] == [item.name for item in (*INVARIANTS, SHORT_RUN)]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_every_invariant(recipe: str):
    outcomes = check_training(Setting(recipe, RECIPES[recipe]))
    assert not moved(outcomes)
    assert {outcome.setting for outcome in outcomes} == {recipe, "small"}
    assert len(outcomes) == 2 * len(INVARIANTS) + 1, "every invariant in both settings, and the short run"


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught_by_the_name_of_what_moved(monkeypatch: pytest.MonkeyPatch, name: str):
    fault = FAULTS[name]
    with planted(monkeypatch, fault):
        found = moved(check_invariants(SMALL))
    assert fault.moved in found, f"{fault.moved} holds, but {found} do not"
    others = {item for item in found if not item.startswith((fault.moved, *fault.too))}
    assert not others, f"{ {item: found[item] for item in others} } have nothing to do with it"


MUST_MOVE_TOO = {
    "forward/activations": "causal-mask-off-by-one",
    "forward/loss": "wrong-position-embedding",
    "sampler/operand-letters": "restricted-variables-leak",
    "training/learns": "label-off-by-one",
}


@pytest.mark.parametrize("invariant", MUST_MOVE_TOO)
def test_an_invariant_without_a_fault_of_its_own_moves_too(monkeypatch: pytest.MonkeyPatch, invariant: str):
    with planted(monkeypatch, FAULTS[MUST_MOVE_TOO[invariant]]):
        assert invariant in moved(check_invariants(SMALL, (*INVARIANTS, SHORT_RUN)))


def test_every_invariant_is_moved_by_some_fault():
    named = {fault.moved for fault in FAULTS.values()} | set(MUST_MOVE_TOO)
    assert {item.name for item in (*INVARIANTS, SHORT_RUN)} <= named


def test_the_page_has_every_fault_and_the_power_against_the_baseline():
    page = PAGE.read_text()
    assert page == current(page), "run: python -m circuit_tests.meta.gate.gate_page"
    assert all(f"| {name} |" in page for name in FAULTS)


def test_half_of_the_baseline_is_no_baseline_for_the_other_seeds():
    """Why a new baseline has as many seeds: the recipe was chosen on the first half, as the page says."""
    gate, records = GateConfig(), load_baseline(BASELINE).records
    assert [record.config["seed"] for record in records] == list(gate.baseline_seeds)
    alarms = {
        size: [
            effect.quantity.name
            for effect in compare_runs(records[:size], records[16:22], gate.alpha)
            if effect.change is Change.REGRESSION
        ]
        for size in (16, 32)
    }
    assert alarms == {16: ["accuracy/2-var/both-restricted"], 32: []}


def test_faults_are_planted_in_a_test_alone(monkeypatch: pytest.MonkeyPatch):
    before = training_batch(SMALL.split, 0, 0, 8).answers
    with planted(monkeypatch, FAULTS["label-off-by-one"]):
        assert not np.array_equal(training_batch(SMALL.split, 0, 0, 8).answers, before)
    assert np.array_equal(training_batch(SMALL.split, 0, 0, 8).answers, before)


def test_a_leak_too_rare_to_be_drawn_is_seen_in_what_the_sampler_can_reach(monkeypatch: pytest.MonkeyPatch):
    with planted(monkeypatch, FAULTS["one-held-out-pair-leaks"]):
        setting = dataclasses.replace(SMALL)
        drawn, reached = setting.read.values, setting.read_reached.values
    leaked = SMALL.split.held_out_pairs[0]
    assert not (drawn == leaked).all(axis=1).any(), "the leak was drawn by chance"
    assert (reached == leaked).all(axis=1).any(), "the leak was not reached"


def test_reached_sequences_hold_every_pair_with_every_kind_and_letter():
    setting = Setting("fast", RECIPES["fast"])
    read, split = setting.read_reached, setting.split
    assert len(np.unique(read.values, axis=0)) == split.n_train_pairs
    for side in (0, 1):
        letters = set(np.unique(read.variables[:, side]).tolist())
        assert letters == {-1, *split.allowed_variables(side).tolist()}


def test_a_sampler_that_draws_in_another_way_is_not_taken_for_one_that_reaches_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("aa_core.gate.draws.training_batch", lambda *arguments: None)
    with pytest.raises(RuntimeError, match="does not draw through"):
        reached_batch(SMALL.split, 0, 100)


@pytest.mark.parametrize("name", SPLITS)
def test_tokens_are_read_as_the_sampler_meant_them(name: str):
    split = SPLITS[name]
    batch = training_batch(split, 0, 0, 2000)
    read = read_tokens(split.task, batch.tokens)
    assert read.well_formed.all()
    for field in ("values", "variables", "sources"):
        assert np.array_equal(getattr(read, field), getattr(batch, field)), field
    for row, (letters, constants, starts) in enumerate(zip(read.letters, read.constants, read.starts, strict=True)):
        n = (letters >= 0).sum()
        tokens = batch.tokens[row]
        assert tokens[starts[:n]].tolist() == (split.task.first_variable_token + letters[:n]).tolist()
        assert tokens[starts[:n] + 1].tolist() == constants[:n].tolist()
        assert (tokens == split.task.pad_token).sum() == split.task.prefix_length - 2 * n


BROKEN_ROWS = {
    "letter twice": {0: 62, 1: 5, 2: 62, 3: 5},
    "letter without a constant": {0: 63, 1: 61},
    "constant without a letter": {0: 61, 1: 7},
    "letter at the end of the prefix": {11: 64},
    "operand that is not assigned": {14: 70},
    "same letter on both sides": {13: 62, 14: 62},
    "no plus": {12: 61},
    "no equals": {15: 61},
    "pad as an operand": {13: 61},
    "no assignment": {0: 61, 1: 61},
}


@pytest.mark.parametrize("broken", BROKEN_ROWS)
def test_rows_that_are_no_sequence_are_noticed(broken: str):
    task = Split(RECIPES["fast"].task, RECIPES["fast"].split).task
    row = np.full((1, 16), task.pad_token)
    row[0, [0, 1, 12, 13, 14, 15]] = [62, 5, 59, 62, 9, 60]
    assert read_tokens(task, row).well_formed.all()
    if broken == "no assignment":
        row[0, 13] = 4
    row[0, list(BROKEN_ROWS[broken])] = list(BROKEN_ROWS[broken].values())
    assert not read_tokens(task, row).well_formed.any()


def test_counts_are_compared_with_their_law():
    law = np.array([0.5, 0.3, 0.2, 0])
    assert departure(np.array([500, 300, 200, 0]), law) == ""
    assert "outcome 3 occurs 1 times" in departure(np.array([500, 300, 200, 1]), law)
    assert "outcome 0: 600 times, 500.0 expected" in departure(np.array([600, 250, 150, 0]), law)
    assert departure(np.zeros(4, int), law) == "nothing was drawn"
    rare = np.array([0.998, *[1e-4] * 20])
    assert departure(np.array([998, *[0] * 18, 1, 1]), rare / rare.sum()) == "", "rare outcomes are taken together"
    assert "rare outcomes 100 times, 2.0 expected" in departure(np.array([900, *[5] * 20]), rare / rare.sum())
    assert uniform_departure(np.arange(1000) % 5, 5) == ""
    assert uniform_departure(np.arange(1000) % 4, 5)
