"""`aa gate`: exit codes, reports, and refusals."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from aa_core.claims.registry import CLAIMS
from aa_core.gate.invariant import Outcome
from aa_core.gate.report import json_text, junit_text, markdown_text
from aa_core.gate.result import GateResult, Throughput
from aa_core.statistics import Verdict
from aa_core.sweeps.point import Failure
from aa_core.sweeps.record import RunRecord
from circuit_tests.meta.gate.gate_records import with_claim
from circuit_tests.meta.gate.made_up_gate import MOVED, SPEED, Gate


def claim_lost(record: RunRecord) -> RunRecord:
    return with_claim(record, CLAIMS[0].id, verdict=Verdict.FAILS)


def test_unchanged_training_is_no_regression(gate: Gate, capsys: pytest.CaptureFixture[str]):
    assert gate() == 0
    assert sorted(gate.trained) == list(range(6))
    printed = capsys.readouterr().out
    assert "6 of 6 runs are in the baseline" in printed
    assert printed.splitlines()[-1].startswith("no regression: 1 of 1 invariants hold; ")


def test_other_seeds_of_the_same_code_are_no_regression(gate: Gate, capsys: pytest.CaptureFixture[str]):
    assert gate("--seeds", "100-105") == 0
    assert "0 of 6 runs are in the baseline" in capsys.readouterr().out


def test_a_lost_claim_is_a_regression_by_its_name_in_every_report(
    gate: Gate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    gate.change = claim_lost
    json_path, junit, markdown = (tmp_path / f"out.{kind}" for kind in ("json", "xml", "md"))
    assert gate("--json", json_path, "--junit", junit, "--markdown", markdown) == 1
    name = f"holds/{CLAIMS[0].id}"
    printed = capsys.readouterr().out
    assert "REGRESSION: " in printed
    assert f"regression   {name}" in printed
    assert "0 of 6" in printed

    report = json.loads(json_path.read_text())
    [regression] = [effect for effect in report["effects"] if effect["change"] == "regression"]
    assert (report["ok"], regression["quantity"], regression["after"]) == (False, name, 0)
    assert 0 < regression["p"] <= regression["adjusted_p"] < 0.005

    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == [name]
    cases = len(list(suite.iter("testcase")))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (str(cases), "1", "0")
    assert f"| regression | {name} |" in markdown.read_text()


def test_a_seed_that_gives_no_run_is_a_regression(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.change = lambda record: Failure(record.config, "training diverged") if record.config["seed"] == 3 else record
    assert gate() == 1
    assert "seed 3: training diverged" in capsys.readouterr().out


def test_no_run_at_all_is_a_regression_too(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.change = lambda record: Failure(record.config, "training diverged")
    assert gate() == 1
    assert "6 seeds gave no run" in capsys.readouterr().out


def test_a_moved_invariant_ends_the_check_before_any_training(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.outcomes = MOVED
    assert gate() == 1
    assert not gate.trained
    printed = capsys.readouterr().out
    assert "sampler/labels" in printed
    assert "12 labels are wrong" in printed
    assert gate("--no-invariants") == 0
    assert sorted(gate.trained) == list(range(6))


def test_invariants_alone_need_no_baseline(gate: Gate):
    gate.baseline.unlink()
    assert gate("--invariants-only") == 0
    gate.outcomes = MOVED
    assert gate("--invariants-only") == 1
    assert not gate.trained


@pytest.mark.parametrize(("factor", "code"), [(0.5, 0), (1.45, 0), (1.55, 1)])
def test_only_much_slower_training_is_a_regression(gate: Gate, factor: float, code: int):
    gate.speed = factor * SPEED
    assert gate() == code


def test_changes_of_code_and_config_are_said(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.change = lambda record: dataclasses.replace(
        record,
        code="1" * 64,
        config={**record.config, "batch_size": 64},
    )
    gate()
    printed = capsys.readouterr().out
    for text in (
        "training code 111111111111, the baseline's is 000000000000",
        "config: batch_size 512 before, 64 now",
    ):
        assert text in printed


def test_a_claim_that_the_registry_no_longer_has_is_lost_until_the_baseline_is_updated(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    renamed = dataclasses.replace(CLAIMS[0], id="accuracy/renamed")
    registry = (renamed, *CLAIMS[1:])
    for module in ("aa_core.gate.check", "aa_core.gate.quantities", "circuit_tests.meta.gate.gate_records"):
        monkeypatch.setattr(f"{module}.CLAIMS", registry)
    reports = [tmp_path / f"out.{kind}" for kind in ("json", "xml", "md")]
    assert gate("--json", reports[0], "--junit", reports[1], "--markdown", reports[2]) == 1
    printed = capsys.readouterr().out
    assert f"lost: {CLAIMS[0].id}: " in printed
    assert "aa gate --update-baseline --reason TEXT" in printed
    assert "not in the baseline, so not compared: accuracy/renamed" in printed
    assert "0 regression" in printed
    assert json.loads(reports[0].read_text())["lost"][0].startswith(CLAIMS[0].id)
    for report in reports[1:]:
        assert CLAIMS[0].id in report.read_text()
    assert gate("--update-baseline", "--reason", "renamed accuracy/0-var") == 0
    assert gate() == 0


LACKING: dict[str, Callable[[RunRecord], RunRecord]] = {
    "claims": lambda record: dataclasses.replace(record, claims=None),
    "accuracies": lambda record: dataclasses.replace(record, accuracies={}),
    "phases": lambda record: dataclasses.replace(record, phases={}),
}


@pytest.mark.parametrize("part", LACKING)
def test_new_runs_that_lack_what_the_baseline_has_are_a_regression(gate: Gate, part: str):
    gate.change = LACKING[part]
    assert gate() == 1


BAD = {
    "no baseline": (["--baseline", "missing.json"], "no baseline at missing.json: run the gate in"),
    "other recipe": (["--recipe", "paper"], "the baseline is of the recipe fast, not of paper"),
    "unknown recipe": (["--recipe", "nope"], "--recipe 'nope': expected one of"),
    "no reason": (["--update-baseline"], "--update-baseline and --reason TEXT go together"),
    "empty reason": (["--update-baseline", "--reason", " "], "--update-baseline and --reason TEXT go together"),
    "reason alone": (["--reason", "x"], "--update-baseline and --reason TEXT go together"),
    "update and simulate": (["--update-baseline", "--reason", "x", "--simulate"], "leave --invariants-only"),
    "one seed": (["--seeds", "3"], "expected at least two"),
    "few seeds": (["--seeds", "0-4"], "--seeds names 5 seeds: with fewer than 6 against the baseline's 16"),
    "few seeds, no invariants": (["--no-invariants", "--seeds", "0-1"], "--seeds names 2 seeds: with fewer than 6"),
    "few seeds for a baseline": (
        ["--update-baseline", "--reason", "x", "--seeds", "0-9"],
        "the new baseline has 10 seeds: with fewer than 14 for the gate's 6",
    ),
    "few seeds to simulate with": (["--simulate", "--seeds", "0-1"], "2 new runs against 14 cannot raise an alarm"),
    "reason that is no text": (["--update-baseline", "--reason", "a\udcff"], "--reason is not valid UTF-8 text"),
    "simulate of another recipe": (["--simulate", "--recipe", "paper"], "the baseline is of the recipe fast"),
    "simulate with a report": (["--simulate", "--json", "x.json"], "leave --json out"),
    "baseline is a folder": (["--update-baseline", "--reason", "x", "--baseline", "."], "cannot write .: it is there"),
    "bad seeds": (["--seeds", "x"], "--seeds 'x': expected"),
    "no jobs": (["--jobs", "0"], "--jobs is 0, expected 1 to 256"),
    "simulate with too many": (["--simulate", "--seeds", "0-15"], "16 runs cannot be split"),
    "same output twice": (["--json", "out", "--junit", "out"], "--junit out is what --json writes"),
    "output is a folder": (["--json", "."], "not a regular file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_line(
    gate: Gate, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str
):
    monkeypatch.chdir(tmp_path)
    arguments, expected = BAD[case]
    assert gate(*arguments) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert not gate.trained


def test_an_output_over_the_baseline_is_refused(gate: Gate, capsys: pytest.CaptureFixture[str]):
    assert gate("--markdown", gate.baseline) == 2
    assert "is what --baseline reads: choose another place" in capsys.readouterr().err


def test_simulated_comparisons_of_the_baseline_raise_no_alarm(gate: Gate, capsys: pytest.CaptureFixture[str]):
    assert gate("--simulate") == 0
    printed = capsys.readouterr().out
    assert "0 of 20 comparisons of 6 runs with the other 10 raised an alarm\n" in printed
    assert "could have raised one: outcome: 1 of 1; headline quantities: " in printed
    assert "10 against 6 give no p-value below 0.0002" in printed
    assert "all 16, where 3e-05 is small enough" in printed
    assert not gate.trained


def test_a_simulation_says_where_a_check_of_so_many_seeds_could_not_tell(
    gate: Gate, capsys: pytest.CaptureFixture[str]
):
    assert gate("--simulate", "--seeds", "0-4") == 0
    assert "a check compares with all 16, where 0.0001 is too large" in capsys.readouterr().out


def test_reports_hold_any_text():
    text = 'a <b> & "c" | d\x00\x1b[31m \ud800 ü\n* e'
    result = GateResult("fast", "0", [Outcome(text, "small", False, text)], [text], (), Throughput(1, 2, 1.5), [text])
    root = ElementTree.fromstring(junit_text(result).encode("utf-8", "strict"))
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert failure.text.startswith('a <b> & "c" | d')
    assert "\x00" not in failure.text
    assert json.loads(json_text(result))["notes"] == [text]
    page = markdown_text(result)
    assert len([line for line in page.splitlines() if line.startswith("|")]) == 3, "a row stays one line"
    assert 'a \\<b\\> & "c" \\| d' in page
