"""The commands at work."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
import safetensors.torch
import torch

from aa_core.claims.claim import Result
from aa_core.claims.expectations import Expectation
from aa_core.claims.registry import CLAIMS
from aa_core.cli.main import main
from aa_core.cli.verify import exit_code
from aa_core.statistics import Verdict
from aa_core.training.config import TrainConfig
from circuit_tests.meta.checkpoint_files import hooked_state_dict


def test_train_then_find(tiny_recipe: TrainConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "--seeds", "0,2", "--recipe", "tiny", "--cache", str(tmp_path)]
    assert main(arguments) == 0
    first = capsys.readouterr()
    assert first.err.count("training, at step") == 2, "without a terminal one line tells that a run is in training"
    manifests = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/manifest.json")}
    assert len(manifests) == 2
    assert main(arguments) == 0
    again = capsys.readouterr()
    assert (again.out, again.err) == (first.out, "")
    assert {path: path.stat().st_mtime_ns for path in manifests} == manifests, "a finished run was trained again"


def test_verify_writes_what_it_prints(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "new" / "report.json"
    code = main(["verify", "--checkpoint", str(checkpoint), "--json", str(report)])
    printed = capsys.readouterr().out
    content = json.loads(report.read_text())
    assert content["subject"]["step"] == 25
    assert content["subject"]["format"] == "assign-and-add"
    assert content["subject"]["config"]["seed"] == 0
    verdicts = {claim["id"]: claim["verdict"] for claim in content["claims"]}
    assert code == 1, "an untrained model passed"
    assert len(verdicts) == len(CLAIMS)
    for claim_id, verdict in verdicts.items():
        assert re.search(rf"^ *{re.escape(claim_id)} .*{verdict}( \(condition\))? *$", printed, re.MULTILINE), claim_id


def test_same_weights_give_the_same_report(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "step_25.pth"
    torch.save(hooked_state_dict(safetensors.torch.load_file(checkpoint)), foreign)
    split = ["--split-seed", "3", "--train-fraction", "0.6", "--never-left", "e", "--never-right", "b"]
    reports = []
    for path, options in ((checkpoint, []), (foreign, split)):
        main(["verify", "--checkpoint", str(path), *options, "--json", str(tmp_path / "report.json")])
        reports.append(json.loads((tmp_path / "report.json").read_text()))
    assert reports[0]["claims"] == reports[1]["claims"]
    assert reports[0]["subject"]["hash"] == reports[1]["subject"]["hash"]
    assert reports[1]["subject"]["format"] == "hooked-transformer"


def test_ask(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ask", "a=1, c=3, a+c=?", "--checkpoint", str(checkpoint)])
    printed = capsys.readouterr().out
    answer = re.search(r"model (\d+), true 4: (right|wrong)", printed)
    assert answer is not None, printed
    assert code == (0 if answer[1] == "4" else 1)
    assert (answer[2] == "right") == (answer[1] == "4")
    for symbol in ("a", "3 *", "1 *", "+", "="):
        assert re.search(rf"^\s*\d+\s+{re.escape(symbol)}\s", printed, re.MULTILINE), f"{symbol} is not in the table"


def result(verdict: str, expect: Literal["fails", "skip"] | None = None) -> Result:
    expectation = Expectation(claim="*", expect=expect, reason="known") if expect else None
    return Result(CLAIMS[0], Verdict(verdict), (), expectation=expectation)


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([], 0),
        ([result("holds"), result("skipped")], 0),
        ([result("skipped"), result("skipped")], 3),  # nothing was judged
        ([result("skipped", "skip")], 0),
        ([result("holds"), result("undecided")], 3),
        ([result("fails"), result("undecided"), result("holds")], 1),
        ([result("fails", "fails"), result("undecided", "fails"), result("skipped", "fails")], 0),
        ([result("holds", "fails")], 1),
        ([result("fails", "fails"), result("undecided")], 3),
    ],
)
def test_exit_code(results: list[Result], code: int) -> None:
    assert exit_code(results) == code


EXPECTATIONS = """
[[expectation]]
claim = "accuracy/*"
model = "checkpoint"
reason = "never trained"

[[expectation]]
claim = "qk-identity/*"
expect = "skip"
reason = "not asked"

[[expectation]]
claim = "no/such"
reason = "a slip"
"""


def test_expectations(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, report = tmp_path / "expectations.toml", tmp_path / "report.json"
    path.write_text(EXPECTATIONS)
    options = {"--checkpoint": checkpoint, "--claims": "accuracy,qk-identity", "--json": report, "--expectations": path}
    code = main(["verify", *(str(part) for option in options.items() for part in option)])
    assert code == 0
    assert "no claim on checkpoint matches the expectation 'no/such'" in capsys.readouterr().err
    claims = json.loads(report.read_text())["claims"]
    assert {claim["verdict"] for claim in claims if claim["id"].startswith("accuracy")} == {"fails"}
    skipped = [claim for claim in claims if claim["id"].startswith("qk-identity")]
    assert {(claim["verdict"], claim["reason"], claim["measured"]) for claim in skipped} == {
        ("skipped", "not asked", None)
    }


def test_help_does_not_import_torch() -> None:
    script = "import sys, aa_core.cli.main as m; m.parser(); print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
