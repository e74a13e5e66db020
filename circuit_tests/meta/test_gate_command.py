"""`aa gate`: exit codes, reports, the baseline, and refusals."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from aa_core.claims.registry import CLAIMS
from aa_core.cli.main import main
from aa_core.gate.baseline import Acceptance, Baseline, load_baseline, write_baseline
from aa_core.gate.invariant import Outcome
from aa_core.gate.report import json_text, junit_text, markdown_text
from aa_core.gate.result import GateResult, Throughput
from aa_core.statistics import Verdict
from aa_core.sweeps.point import Failure, Work
from aa_core.sweeps.record import RunRecord, plain_config
from aa_core.training.codehash import PACKAGE, training_code_hash
from aa_core.training.config import TrainConfig
from aa_core.training.recipes import RECIPES
from circuit_tests.meta.gate_faults import FAULTS, planted_package
from circuit_tests.meta.gate_records import made_up_record, made_up_records, with_claim
from circuit_tests.meta.tiny import TINY

Change = Callable[[RunRecord], RunRecord | Failure]
SPEED = 1.7
FINE = [Outcome("sampler/labels", "small", True, "80,000 labels")]
MOVED = [Outcome("sampler/labels", "small", False, "12 labels are wrong, such as 3 for 1+1")]


def same(record: RunRecord) -> RunRecord:
    return record


def claim_lost(record: RunRecord) -> RunRecord:
    return with_claim(record, CLAIMS[0].id, verdict=Verdict.FAILS)


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    path = tmp_path / "baseline.json"
    accepted = [Acceptance("2026-01-01", "the first", "0" * 64, 16)]
    write_baseline(path, Baseline("fast", SPEED, accepted, made_up_records(range(16))))
    return path


class Gate:
    """The command with made-up runs in place of trainings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, baseline: Path) -> None:
        self.change: Change = same
        self.outcomes, self.speed = FINE, SPEED
        self.trained: list[int] = []
        self.baseline = baseline
        monkeypatch.setattr("aa_core.gate.check.run_points", self._run_points)
        monkeypatch.setattr("aa_core.gate.registry.check_training", lambda setting, progress: self.outcomes)
        monkeypatch.setattr("aa_core.gate.throughput.step_over_products", lambda config: self.speed)

    def _run_points(self, configs: Sequence[TrainConfig], work: Work, *, jobs: int | None) -> Iterator[Any]:
        assert work.judge, "claims must be judged"
        for config in reversed(configs):  # runs come back in no particular order
            self.trained.append(config.seed)
            yield self.change(made_up_record(config.seed))

    def __call__(self, *arguments: str | Path) -> int:
        return main(["gate", "--baseline", str(self.baseline), *map(str, arguments)])


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, baseline: Path) -> Gate:
    return Gate(monkeypatch, baseline)


def test_unchanged_training_is_no_regression(gate: Gate, capsys: pytest.CaptureFixture[str]):
    assert gate() == 0
    assert sorted(gate.trained) == list(range(8))
    printed = capsys.readouterr().out
    assert "8 of 8 runs are in the baseline" in printed
    assert printed.splitlines()[-1].startswith("no regression: 1 of 1 invariants hold; ")


def test_other_seeds_of_the_same_code_are_no_regression(gate: Gate, capsys: pytest.CaptureFixture[str]):
    assert gate("--seeds", "100-107") == 0
    assert "0 of 8 runs are in the baseline" in capsys.readouterr().out


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
    assert "0 of 8" in printed

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
    assert "8 seeds gave no run" in capsys.readouterr().out


def test_a_moved_invariant_ends_the_check_before_any_training(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.outcomes = MOVED
    assert gate() == 1
    assert not gate.trained
    printed = capsys.readouterr().out
    assert "sampler/labels" in printed
    assert "12 labels are wrong" in printed
    assert gate("--no-invariants") == 0
    assert sorted(gate.trained) == list(range(8))


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
        claims=dict(list(record.claims.items())[1:]),  # pyright: ignore
    )
    gate()
    printed = capsys.readouterr().out
    for text in (
        "training code 111111111111, the baseline's is 000000000000",
        "config: batch_size 512 before, 64 now",
    ):
        assert text in printed
    assert f"no longer judged: {CLAIMS[0].id}" in printed


# The baseline


def test_a_baseline_is_made_and_made_anew_with_its_history(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.baseline.unlink()
    assert gate("--update-baseline", "--reason", "the first") == 0
    assert sorted(gate.trained) == list(range(16))
    assert gate("--update-baseline", "--reason", " a faster\nsampler ", "--seeds", "0-11") == 0
    made = load_baseline(gate.baseline)
    assert [(item.reason, item.seeds) for item in made.history] == [("the first", 16), ("a faster\nsampler", 12)]
    assert [record.config["seed"] for record in made.records] == list(range(12))
    assert made.records[0] == made_up_record(0)
    assert gate() == 0


@pytest.mark.parametrize("problem", ["invariant", "failure"])
def test_no_baseline_is_made_of_faulty_training(gate: Gate, problem: str):
    before = gate.baseline.read_bytes()
    if problem == "invariant":
        gate.outcomes = MOVED
    else:
        gate.change = lambda record: Failure(record.config, "diverged") if record.config["seed"] == 5 else record
    assert gate("--update-baseline", "--reason", "x") == 1
    assert gate.baseline.read_bytes() == before


def test_a_baseline_is_read_as_it_was_written(baseline: Path):
    before = baseline.read_bytes()
    read = load_baseline(baseline)
    assert read.records == made_up_records(range(16))
    write_baseline(baseline, read)
    assert baseline.read_bytes() == before
    assert before.count(b"\n") < 40, "one record a line"


def broken(text: str, problem: str) -> str:
    if problem == "not JSON":
        return text[:-20]
    data = json.loads(text)
    if problem == "other format":
        data["format"] = 2
    if problem == "no records":
        data["records"] = []
    if problem == "no code":
        del data["records"][3]["code"]
    if problem == "a list":
        data = [data]
    return json.dumps(data)


@pytest.mark.parametrize("problem", ["not JSON", "other format", "no records", "no code", "a list"])
def test_a_broken_baseline_is_refused_before_any_work(gate: Gate, capsys: pytest.CaptureFixture[str], problem: str):
    gate.baseline.write_text(broken(gate.baseline.read_text(), problem))
    assert gate() == 2
    output = capsys.readouterr()
    assert output.err.count("\n") == 1, output.err
    assert str(gate.baseline) in output.err
    assert not gate.trained


BAD = {
    "no baseline": (["--baseline", "missing.json"], "no baseline at missing.json: make one"),
    "other recipe": (["--recipe", "paper"], "the baseline is of the recipe fast, not of paper"),
    "unknown recipe": (["--recipe", "nope"], "--recipe 'nope': expected one of"),
    "no reason": (["--update-baseline"], "--update-baseline and --reason TEXT go together"),
    "empty reason": (["--update-baseline", "--reason", " "], "--update-baseline and --reason TEXT go together"),
    "reason alone": (["--reason", "x"], "--update-baseline and --reason TEXT go together"),
    "update and simulate": (["--update-baseline", "--reason", "x", "--simulate"], "leave --invariants-only"),
    "one seed": (["--seeds", "3"], "expected at least two"),
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


# Simulated comparisons


def test_simulated_comparisons_of_the_baseline_raise_no_alarm(gate: Gate, capsys: pytest.CaptureFixture[str]):
    assert gate("--simulate") == 0
    assert "0 of 20 comparisons of 8 runs with the other 8 raised an alarm; at least" in capsys.readouterr().out
    assert not gate.trained


# Reports


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


# Planted faults in a copy of the package, and the real thing at a tiny size


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
    command = [sys.executable, "-m", "circuit_tests.meta.gate_faults", "no-distractors", "gate", "--invariants-only"]
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
    assert main([*update, "--update-baseline", "--reason", "tiny", "--seeds", "0-5", "--jobs", "2"]) == 0
    made = load_baseline(tmp_path / "b")
    assert [record.config for record in made.records] == [
        plain_config(dataclasses.replace(TINY, seed=seed)) for seed in range(6)
    ]
    assert main([*options, "--seeds", "0-2", "--jobs", "1"]) == 0, capsys.readouterr().out
    assert "3 of 3 runs are in the baseline" in capsys.readouterr().out
