"""Controls break what they say and little else."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aa_core.checkpoints import load_checkpoint
from aa_core.circuits.accuracy import full_prefix_accuracy, held_out_zero_variable
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.state import State, diagnose
from aa_core.circuits.subject import Subject
from aa_core.claims.registry import CLAIMS, interval_alpha, select_claims
from aa_core.claims.verification import verify
from aa_core.controls import (
    CONTROLS,
    SYMMETRIES,
    TRAINED_CONTROLS,
    TRAJECTORY_CONTROLS,
)
from aa_core.controls.edits import derangement, shifted_scores
from aa_core.controls.matrix import UNTRAINED
from aa_core.model.symbol_space import symbol_tables
from aa_core.statistics import Verdict
from aa_core.task.sampling import KINDS, Kind
from circuit_tests.meta.compiled_model import compiled_subject

ALPHA = interval_alpha()
ADDS, BINDS = ("accuracy/0-var",), ("accuracy/1L", "accuracy/1R", "accuracy/2-var")
PREVIOUS, IDENTITY = ("previous-token/argmax",), ("qk-identity/argmax", "qk-identity/energy")

# For each control: claims that fail under it, claims that still hold.
EXPECTED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "uniform-attention-0": ((*PREVIOUS, *BINDS[:2]), ADDS),
    "positions-permuted": ((*PREVIOUS, *BINDS), ADDS),
    "one-letter-bound": ((*PREVIOUS, *BINDS), ADDS),
    "one-letter-unbound": (("previous-token/every-variable",), ADDS),
    "one-position-unbound": (("previous-token/every-position",), ADDS),
    "equals-ignores-left": (("accuracy/1L", "accuracy/2-var"), (*ADDS, *PREVIOUS, *IDENTITY)),
    "equals-ignores-right": (("accuracy/1R", "accuracy/2-var"), (*ADDS, *PREVIOUS, *IDENTITY)),
    "restricted-letters-unseen": (
        ("generalisation/1-var-restricted-1L", "generalisation/1-var-restricted-1R"),
        (*ADDS, *PREVIOUS, *IDENTITY),
    ),
    "ov0-without-variables": ((*IDENTITY, *BINDS), (*ADDS, *PREVIOUS)),
    "variables-equal": ((*IDENTITY, *BINDS), (*ADDS, *PREVIOUS)),
    "letters-merged": (("qk-identity/argmax",), (*ADDS, *PREVIOUS)),
    "qk1-rotated": ((*IDENTITY, *BINDS), PREVIOUS),
    "qk1-rows-shuffled": ((*IDENTITY, *BINDS), PREVIOUS),
    "variables-permuted": ((), (*ADDS, *BINDS, *PREVIOUS, *IDENTITY)),
    "ov1-rows-shuffled": ((*ADDS, *BINDS, "fourier/weighted-r2"), (*PREVIOUS, *IDENTITY)),
    "constants-permuted": ((*ADDS, *BINDS, "fourier/weighted-r2"), (*PREVIOUS, *IDENTITY)),
    "win-permuted": ((*ADDS, *BINDS, "fourier/output-phase"), ("fourier/neuron-r2", *PREVIOUS, *IDENTITY)),
    "output-phases-shuffled": (
        (*ADDS, *BINDS, "fourier/output-phase"),
        ("fourier/weighted-r2", "fourier/output-r2", *PREVIOUS, *IDENTITY),
    ),
    "top-frequency-removed": (
        ("fourier/every-written-frequency-delivered",),
        (*ADDS, *BINDS, "fourier/single-frequency-is-enough", *PREVIOUS, *IDENTITY),
    ),
    "top-5-frequencies-removed": ((*ADDS, *BINDS, "fourier/key-frequencies-suffice"), (*PREVIOUS, *IDENTITY)),
    "sums-looked-up": (
        ("generalisation/0-var-held-out", "fourier/weighted-r2", "fourier/single-frequency-is-enough"),
        (*ADDS, *BINDS, *PREVIOUS, *IDENTITY),
    ),
    "prefix-marked": (
        ("shared-representation/centred-1L", "shared-representation/centred-1R"),
        (*ADDS, *BINDS, *PREVIOUS, *IDENTITY, "fourier/weighted-r2"),
    ),
    "random": ((*ADDS, *BINDS, *PREVIOUS, *IDENTITY, "fourier/weighted-r2"), ()),
}


@pytest.fixture(scope="module")
def untrained(good: Subject) -> Subject:
    return CONTROLS["random"].apply(good, 1)


@pytest.fixture(scope="module")
def run(good: Subject, untrained: Subject) -> TrajectorySubject:
    """Learns to add at step 10 and to bind at step 100."""
    adds = CONTROLS["uniform-attention-0"].apply(good, 0)
    return TrajectorySubject(
        (0, 10, 50, 100, 200), (untrained, adds, dataclasses.replace(adds), compiled_subject(), good)
    )


def verdicts(subject: Subject | TrajectorySubject, ids: tuple[str, ...]) -> dict[str, Verdict]:
    return {result.claim.id: result.verdict for result in verify(subject, select_claims(",".join(ids)), ALPHA)}


# What each control is


def test_claims_name_controls_that_exist() -> None:
    known = {*CONTROLS, *TRAJECTORY_CONTROLS}
    unknown = {claim.id: names for claim in CLAIMS if (names := set(claim.broken_by) - known)}
    assert not unknown, f"no such controls: {unknown}"


def test_every_claim_names_a_control_besides_untrained_weights() -> None:
    bare = [claim.id for claim in CLAIMS if not set(claim.broken_by) - set(UNTRAINED)]
    assert not bare, f"only random weights would break {bare}"


def test_harmless_controls_break_no_claim() -> None:
    harmless = {name for name, control in CONTROLS.items() if control.harmless}
    assert harmless == {"variables-permuted"}
    assert not [claim.id for claim in CLAIMS if harmless & set(claim.broken_by)]


def test_each_control_has_its_expectations() -> None:
    assert set(EXPECTED) == set(CONTROLS)


@pytest.mark.parametrize("name", CONTROLS)
def test_control_breaks_its_claims_and_no_others(good: Subject, name: str) -> None:
    fails, holds = EXPECTED[name]
    broken = CONTROLS[name].apply(good, 0)
    assert verdicts(broken, (*fails, *holds)) == dict.fromkeys(fails, Verdict.FAILS) | dict.fromkeys(
        holds, Verdict.HOLDS
    )


def test_expected_claims_hold_on_the_model_itself(good: Subject) -> None:
    """Else a control would be blamed for what was broken before."""
    ids = tuple({name for fails, holds in EXPECTED.values() for name in (*fails, *holds)})
    failing = {claim for claim, verdict in verdicts(good, ids).items() if verdict is Verdict.FAILS}
    assert not failing


@pytest.mark.parametrize("name", [*CONTROLS, *SYMMETRIES])
def test_parameters_are_new_complete_and_reproducible(good: Subject, name: str) -> None:
    change = CONTROLS.get(name) or SYMMETRIES[name]
    before = {key: weight.clone() for key, weight in good.parameters.items()}
    built, again = change.build(good, 3), change.build(good, 3)
    assert built.keys() == before.keys()
    assert any(built[key].shape != before[key].shape or not built[key].equal(before[key]) for key in before)
    for key, weight in built.items():
        assert weight.dtype == before[key].dtype, key
        assert weight.ndim == before[key].ndim, key
        assert weight.isfinite().all(), key
        assert weight.equal(again[key]), f"{key} differs between two builds from one seed"
        assert good.parameters[key].equal(before[key]), f"{key} of the model itself was changed"


def test_memorising_model_answers_seen_pairs_and_their_mirrors_alone(good: Subject) -> None:
    looked_up = CONTROLS["sums-looked-up"].apply(good, 0)
    assert [full_prefix_accuracy(looked_up, kind).value for kind in KINDS] == [1, 1, 1, 1]
    right = looked_up.grid.correct.reshape(good.task.modulus, -1)
    known = good.split.seen | good.split.seen.T
    assert right[known].all()
    assert right[~known].mean() < 0.5
    assert held_out_zero_variable(looked_up).value < held_out_zero_variable(good).value


def test_random_weights_have_the_mean_scale_of_the_model(good: Subject, untrained: Subject) -> None:
    old, new = (
        torch.cat([weight.flatten() for weight in subject.parameters.values()]) for subject in (good, untrained)
    )
    assert float(new.square().mean() / old.square().mean()) == pytest.approx(1, rel=0.05)
    assert not CONTROLS["random"].build(good, 2)["embed.W_E"].equal(untrained.parameters["embed.W_E"])


# How they are made


@given(n=st.integers(2, 40), seed=st.integers(0, 2**32))
def test_derangement_moves_everything(n: int, seed: int) -> None:
    moved = derangement(n, np.random.default_rng(seed))
    assert sorted(moved) == list(range(n))
    assert (moved != np.arange(n)).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_position_keeps_its_predecessor(good: Subject, seed: int) -> None:
    permuted = CONTROLS["positions-permuted"].build(good, seed)
    old, new = good.parameters["pos_embed.W_pos"], permuted["pos_embed.W_pos"]
    prefix = good.task.prefix_length
    order = [int((old == row).all(1).nonzero()) for row in new]
    assert sorted(order[:prefix]) == list(range(prefix))
    assert order[prefix:] == list(range(prefix, good.task.n_ctx)), "positions after the prefix must stay"
    assert all(later != earlier + 1 for earlier, later in pairwise(order[:prefix]))


def test_scores_shift_where_asked_and_nowhere_else(untrained: Subject) -> None:
    task = untrained.task
    letters = np.array([1, 3])
    changed = shifted_scores(untrained.parameters, np.arange(task.modulus), task.first_variable_token + letters, -5)
    before, after = untrained.tables, symbol_tables(task, changed)
    expected = torch.zeros_like(before.pair_scores)
    expected[:, : task.modulus, task.first_variable_token + letters] = -5
    rounding = 1e-5 * float(before.pair_scores.abs().max())
    torch.testing.assert_close(after.pair_scores - before.pair_scores, expected, atol=rounding, rtol=0)
    torch.testing.assert_close(after.row_scores, before.row_scores, atol=rounding, rtol=0)


def test_the_mark_on_the_prefix_is_one_direction_that_nothing_reads(untrained: Subject) -> None:
    marked = CONTROLS["prefix-marked"].apply(untrained, 0)
    old, new = (subject.full_prefix(Kind.TWO).activations.resid_mid for subject in (untrained, marked))
    _, strength, directions = torch.linalg.svd((new - old).double(), full_matrices=False)
    assert strength[0] > 1e3 * strength[1]
    for name in ("blocks.1.mlp.W_in", "unembed.W_U"):
        read = directions[0] @ marked.parameters[name].double()
        assert read.abs().max() < 1e-3 * marked.parameters[name].abs().max(), name


# Trajectories


@pytest.mark.parametrize("name", TRAJECTORY_CONTROLS)
def test_trajectory_controls_keep_the_steps_and_change_the_models(run: TrajectorySubject, name: str) -> None:
    changed = TRAJECTORY_CONTROLS[name].build(run, 0)
    assert changed.steps == run.steps
    assert any(new is not old for new, old in zip(changed.subjects, run.subjects, strict=True))


def test_the_run_itself_learns_in_order(run: TrajectorySubject) -> None:
    assert verdicts(run, ("order/0-var-before-1L",)) == {"order/0-var-before-1L": Verdict.HOLDS}


@pytest.mark.parametrize("name", ["random-trajectory", "reversed-trajectory", "constant-trajectory", "never-binds"])
def test_trajectory_controls_break_the_order_of_learning(run: TrajectorySubject, name: str) -> None:
    changed = TRAJECTORY_CONTROLS[name].build(run, 0)
    assert verdicts(changed, ("order/0-var-before-1L",)) == {"order/0-var-before-1L": Verdict.FAILS}


def test_trajectory_controls_do_what_they_say(run: TrajectorySubject) -> None:
    built = {name: control.build(run, 0).subjects for name, control in TRAJECTORY_CONTROLS.items()}

    def places(name: str) -> list[int | None]:
        """For each model of the new trajectory its place in the old one, None for a new model."""
        place = {id(subject): place for place, subject in enumerate(run.subjects)}
        return [place.get(id(subject)) for subject in built[name]]

    assert places("reversed-trajectory") == [4, 3, 2, 1, 0]
    assert places("constant-trajectory") == [4, 4, 4, 4, 4]
    assert places("all-at-once") == [0, 0, 0, 4, 4]
    assert places("never-binds") == [None] * 5
    assert places("random-trajectory") == [None] * 5
    assert places("previous-token-late") == [None, None, None, 3, 4]
    shuffled = [place for place in places("shuffled-trajectory") if place is not None]
    assert sorted(shuffled) == [0, 1, 2, 3, 4]
    assert not any(new == old for old, new in enumerate(shuffled))
    for subject in (*built["never-binds"], *built["previous-token-late"][:3]):
        assert not subject.parameters["blocks.0.attn.W_Q"].any()


@pytest.mark.parametrize("name", TRAINED_CONTROLS)
def test_trained_controls_are_the_runs_that_they_say(name: str) -> None:
    control = TRAINED_CONTROLS[name]
    checkpoint = load_checkpoint(control.path)
    assert (checkpoint.config, checkpoint.step) == (control.config, control.config.steps)


STATES = {
    "trained-on-addition-alone": State.ADDS,
    "trained-on-few-pairs": State.MEMORISING,
    "trained-letters-alike": State.BINDS,
}


@pytest.mark.parametrize("name", TRAINED_CONTROLS)
def test_trained_controls_are_in_the_state_that_they_show(name: str, good: Subject) -> None:
    judged = TRAINED_CONTROLS[name].apply(good, 0)
    assert diagnose(judged).state is STATES[name]
    assert judged.split.config.one_variable_frequency == 1, "judged on every kind, whatever it was trained on"


def test_trained_controls_name_claims_that_exist() -> None:
    known = {claim.family for claim in CLAIMS} | {claim.id for claim in CLAIMS}
    for control in TRAINED_CONTROLS.values():
        assert set(control.breaks) | set(control.spares) <= known, control.name
        assert set(control.breaks), f"{control.name} breaks nothing"
        assert not set(control.breaks) & set(control.spares), control.name


def test_controls_spare_families_that_exist() -> None:
    for control in CONTROLS.values():
        assert set(control.spares) <= {claim.family for claim in CLAIMS}, control.name
