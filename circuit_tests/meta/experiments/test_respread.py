"""Branches of a run: what each changes, and that training goes on from there as it should."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
import torch

from aa_core.circuits.state import State
from aa_core.cli.main import main
from aa_core.experiments.respread import BRANCHES, EMBEDDINGS, Point, branch_points, changed_tensors
from aa_core.report.respread_page import branch_lines, branches_table, points_json
from aa_core.task.split import Split
from aa_core.training.optimisation import advance, initial_state, state_tensors
from aa_core.training.recipes import RECIPES
from circuit_tests.meta.tiny import TINY

ROOT = Path(__file__).parents[3]
CPU = torch.device("cpu")
LETTERS = slice(TINY.task.first_variable_token, None)
SPLIT = Split(TINY.task, TINY.split)


@pytest.fixture(scope="module")
def base() -> dict[str, torch.Tensor]:
    """The tiny run at step 10."""
    state = initial_state(TINY, CPU)
    advance(state, TINY, SPLIT, 10)
    return {name: tensor.clone() for name, tensor in state_tensors(state).items()}


def changed(base: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    return changed_tensors(base, BRANCHES[name], SPLIT, TINY)


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_changes_the_variables_alone(base: dict[str, torch.Tensor], name: str):
    before = {key: tensor.clone() for key, tensor in base.items()}
    after = changed(base, name)
    assert all(base[key].equal(before[key]) for key in base), "the state that all branches share was changed"
    assert after.keys() == base.keys()
    for key, tensor in after.items():
        rest = slice(None, LETTERS.start) if key.endswith(EMBEDDINGS) else slice(None)
        assert tensor[rest].equal(base[key][rest]), f"{key} is not as it was"
    kept = all(
        after[f"{moment}.{EMBEDDINGS}"].equal(base[f"{moment}.{EMBEDDINGS}"]) for moment in ("exp_avg", "exp_avg_sq")
    )
    assert kept == (name not in ("fresh", "forgetful"))


def test_what_each_branch_makes_of_the_variables(base: dict[str, torch.Tensor]):
    old = base[EMBEDDINGS][LETTERS]
    new = {name: changed(base, name)[EMBEDDINGS][LETTERS] for name in BRANCHES}
    assert new["unchanged"].equal(old)
    assert new["faster"].equal(old)
    assert new["forgetful"].equal(old)
    torch.testing.assert_close(new["shrunk"].mean(0), old.mean(0))
    torch.testing.assert_close(new["shrunk"] - old.mean(0), 0.1 * (old - old.mean(0)))
    torch.testing.assert_close(new["merged"][1:3], old[1:3].mean(0).expand(2, -1))  # a and d are restricted
    assert new["merged"][[0, 3]].equal(old[[0, 3]])
    assert 0.1 < float(new["fresh"].std()) < 0.3, "not the scale of step 0, which is .2"
    assert float((changed(base, "fresh")[f"exp_avg.{EMBEDDINGS}"][LETTERS]).abs().max()) == 0


def test_the_unchanged_branch_is_the_run_itself():
    points = list(branch_points(TINY, 10, 20, [BRANCHES["merged"], BRANCHES["unchanged"]], every=5))
    assert [(point.branch, point.step) for point in points] == [
        (name, step) for name in ("merged", "unchanged") for step in (10, 15, 20)
    ]
    whole = list(branch_points(TINY, 5, 20, [BRANCHES["unchanged"]], every=5))
    assert points[3:] == whole[1:], "it depends on where it was interrupted, or on the branch before"
    assert points[0].spread == pytest.approx(0, abs=1e-6)
    assert 0 < points[2].spread < points[5].spread, "merged letters do not come apart in training"


def test_the_faster_branch_has_another_learning_rate():
    unchanged, faster = (
        list(branch_points(TINY, 10, 15, [BRANCHES[name]], every=5)) for name in ("unchanged", "faster")
    )
    assert dataclasses.replace(faster[0], branch="unchanged") == unchanged[0]
    tripled = dataclasses.replace(TINY, learning_rate=3 * TINY.learning_rate)
    state = initial_state(TINY, CPU)
    advance(state, TINY, SPLIT, 10)
    advance(state, tripled, SPLIT, 15)
    assert faster[1] != unchanged[1]
    rows = state.parameters[EMBEDDINGS].detach()[LETTERS][1:3].double()
    distance = float((rows[0] - rows[1]).norm() / rows.norm(dim=1).mean())
    assert faster[1].embedding_spread == pytest.approx(distance, rel=1e-6)


# Reports


def point(branch: str, step: int, state: State, spread: float, right: float = 0.5) -> Point:
    accuracy = {"0-var": 1.0, "1L": right, "1R": 0.25, "2-var": 0.125}
    return Point(branch, step, state.value, spread, 0.2, 1.23456, accuracy)


POINTS = [
    point("merged", 1000, State.STUCK, 0.0),
    point("merged", 1200, State.STUCK, 0.1),
    point("merged", 1400, State.ADDS, 0.3),
    point("unchanged", 1000, State.ADDS, 0.9),
    point("unchanged", 1200, State.BINDS, 0.4),
    point("unchanged", 1400, State.COMPOSES, 1.2, 1.0),
]


def test_table_of_branches(tmp_path: Path):
    for seed in (10, 9):
        (tmp_path / f"seed{seed}.json").write_text(points_json("paper", seed, POINTS))
    lines = branches_table(tmp_path).splitlines()
    assert lines[2:] == [
        f"| {seed} | {branch} |"
        for seed in (9, 10)
        for branch in (
            "unchanged | 1000 | 1400 | 0.90 | 0.40 | 1.20 | 0.20 | 0.20 | 1200 | 1400 | 1.00 | 0.25 | 0.12 | 1.2",
            "merged | 1000 | 1400 | 0.00 | 0.10 | 0.30 | 0.20 | 0.20 | - | - | 0.50 | 0.25 | 0.12 | 1.2",
        )
    ]
    assert lines[0].count("|") == lines[2].count("|")
    assert branch_lines(POINTS)[1].startswith(
        "branch merged, from step 1000, to step 1400, spread at first 0.00, least later 0.10"
    )


def test_page_is_current():
    assert branches_table(ROOT / "docs/stuck") in (ROOT / "docs/stuck.md").read_text()


# Command line


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(RECIPES, "tiny", TINY)
    monkeypatch.setattr("aa_core.cli.respread.EVERY", 5)
    arguments = ["respread", "--seed", "0", "--recipe", "tiny", "--start", "5", "--until", "15"]
    assert main([*arguments, "--branches", "fresh,merged", "--json", str(tmp_path / "p.json")]) == 0
    document = json.loads((tmp_path / "p.json").read_text())
    assert (document["recipe"], document["seed"]) == ("tiny", 0)
    assert [(each["branch"], each["step"]) for each in document["points"]] == [
        (branch, step) for branch in ("fresh", "merged") for step in (5, 10, 15)
    ]
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == ["branch merged", "branch fresh"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--branches", "merged,other"], "--branches 'other': expected some of unchanged"),
        (["--branches", "merged,merged"], "each once"),
        (["--start", "100"], "--start is 100, expected a multiple of 200"),
        (["--start", "0"], "--start is 0, expected a multiple of 200"),
        (["--until", "1000"], r"--until is 1000, expected a step after --start \(1000\)"),
        (["--until", "40200"], "--until is 40200, expected a multiple of 200 up to 40000"),
        (["--recipe", "none"], "--recipe 'none'"),
        (["--json", "."], "cannot write"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str):
    assert main(["respread", "--seed", "0", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error), f"{error!r} does not say {message!r}"
