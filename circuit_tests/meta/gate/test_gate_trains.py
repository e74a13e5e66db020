"""`aa gate` on copies of the package with planted faults, and on real runs of a tiny size."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from aa_core.cli.main import main
from aa_core.gate.baseline import load_baseline
from aa_core.sweeps.record import plain_config
from aa_core.training.codehash import PACKAGE, training_code_hash
from aa_core.training.recipes import RECIPES
from circuit_tests.meta.gate.gate_faults import FAULTS, planted_package
from circuit_tests.meta.tiny import TINY


def test_a_copy_with_a_fault_is_other_training_code(tmp_path: Path):
    for name in ("label-off-by-one", "weight-decay-on-nothing"):
        copy = planted_package(FAULTS[name], tmp_path / name)
        assert training_code_hash(copy) != training_code_hash(), name
        changed = [
            path for path in copy.rglob("*.py") if path.read_bytes() != (PACKAGE / path.relative_to(copy)).read_bytes()
        ]
        assert changed == [copy / FAULTS[name].file]


@pytest.mark.slow
def test_the_command_runs_on_a_copy_with_a_fault(tmp_path: Path):
    command = [
        sys.executable,
        "-m",
        "circuit_tests.meta.gate.gate_faults",
        "no-distractors",
        "gate",
        "--invariants-only",
    ]
    report = tmp_path / "report.json"
    done = subprocess.run(
        [*command, "--json", str(report)], capture_output=True, text=True, check=False, cwd=PACKAGE.parent
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(report.read_text())
    assert found["code"] != training_code_hash()
    assert "sampler/assignments" in {item["name"] for item in found["invariants"] if not item["ok"]}


@pytest.mark.slow
def test_tiny_runs_are_trained_and_judged_and_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(RECIPES, "tiny", TINY)
    monkeypatch.setattr("aa_core.gate.throughput.step_over_products", lambda config: 2.0)
    options = [
        "gate",
        "--recipe",
        "tiny",
        "--no-invariants",
        "--cache",
        str(tmp_path),
        "--baseline",
        str(tmp_path / "b"),
    ]
    update = [item for item in options if item != "--no-invariants"]
    assert main([*update, "--update-baseline", "--reason", "tiny", "--seeds", "0-13", "--jobs", "1"]) == 0
    assert len(list(tmp_path.glob("runs/*/manifest.json"))) == 14
    made = load_baseline(tmp_path / "b")
    assert [record.config for record in made.records] == [
        plain_config(dataclasses.replace(TINY, seed=seed)) for seed in range(14)
    ]
    assert main([*options, "--jobs", "1"]) == 0, capsys.readouterr().out
    assert "6 of 6 runs are in the baseline" in capsys.readouterr().out
