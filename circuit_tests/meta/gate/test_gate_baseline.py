"""The baseline of `aa gate`: made, read, replaced, and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aa_core.claims.registry import CLAIMS
from aa_core.errors import InputError
from aa_core.gate.baseline import Acceptance, Baseline, load_baseline, write_baseline
from aa_core.gate.config import GateConfig
from aa_core.sweeps.point import Failure
from aa_core.training.codehash import PACKAGE
from circuit_tests.meta.gate.gate_records import made_up_record, made_up_records
from circuit_tests.meta.gate.made_up_gate import MOVED, SPEED, Gate


def test_a_baseline_is_made_and_made_anew_with_its_history(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.baseline.unlink()
    assert gate("--update-baseline", "--reason", "the first") == 0
    assert f"new baseline: {gate.baseline}, 32 seeds of fast; " in capsys.readouterr().out
    assert sorted(gate.trained) == list(range(32))
    assert gate("--update-baseline", "--reason", " a faster\nsampler ", "--seeds", "0-13") == 0
    made = load_baseline(gate.baseline)
    assert [(item.reason, item.seeds) for item in made.history] == [("the first", 32), ("a faster\nsampler", 14)]
    assert [record.config["seed"] for record in made.records] == list(range(14))
    assert made.records[0] == made_up_record(0)
    assert gate() == 0


@pytest.mark.parametrize("problem", ["invariant", "failure"])
def test_no_baseline_is_made_of_faulty_training(gate: Gate, capsys: pytest.CaptureFixture[str], problem: str):
    before = gate.baseline.read_bytes()
    if problem == "invariant":
        gate.outcomes = MOVED
    else:
        gate.change = lambda record: Failure(record.config, "diverged") if record.config["seed"] == 5 else record
    assert gate("--update-baseline", "--reason", "x") == 1
    assert gate.baseline.read_bytes() == before
    assert f"{gate.baseline} was not written" in capsys.readouterr().out


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


def edit_claim(data: dict[str, Any], **changes: object) -> None:
    data["records"][3]["claims"][CLAIMS[0].id].update(changes)


def edit_all(data: dict[str, Any], **changes: object) -> None:
    for record in data["records"]:
        record["config"].update(changes)


EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a value that is no number": (lambda data: edit_claim(data, value=float("nan")), "record 3"),
    "an infinite value": (lambda data: edit_claim(data, value=float("inf")), "record 3"),
    "no accuracies": (lambda data: data["records"][3].update(accuracies={}), "record 3"),
    "an accuracy fewer": (lambda data: data["records"][3]["accuracies"].pop("2-var/seen"), "record 3"),
    "more right than there are": (lambda data: data["records"][3]["accuracies"].update({"x": [7, 5]}), "record 3"),
    "5 of 0": (lambda data: data["records"][3]["accuracies"].update({"2-var/seen": [5, 0]}), "record 3"),
    "no claims": (lambda data: data["records"][3].update(claims=None), "record 3"),
    "a claim fewer": (lambda data: data["records"][3]["claims"].pop(CLAIMS[0].id), "record 3"),
    "no phases": (lambda data: data["records"][3].update(phases={}), "record 3"),
    "no config": (lambda data: data["records"][3].update(config={}), "record 3"),
    "another config": (lambda data: data["records"][3]["config"].update(batch_size=64), "record 3"),
    "another config in all": (lambda data: edit_all(data, batch_size=64), "record 0"),
    "another seed": (lambda data: data["records"][3]["config"].update(seed=77), "record 3"),
    "another code": (lambda data: data["records"][3].update(code="1" * 64), "record 3"),
    "the same seed twice": (lambda data: data["records"].__setitem__(3, data["records"][2]), "record 3"),
    "another recipe": (lambda data: data.update(recipe="paper"), "record 0"),
    "a history of other code": (lambda data: data["history"][-1].update(code="1" * 64), "the history ends with"),
    "a history of other seeds": (lambda data: data["history"][-1].update(seeds=3), "the history ends with"),
    "a huge speed": (lambda data: data.update(step_over_products=1e308), "step_over_products"),
    "an infinite speed": (lambda data: data.update(step_over_products=float("inf")), "step_over_products"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_baseline_that_no_gate_could_have_written_is_refused_by_file_and_record(
    gate: Gate, capsys: pytest.CaptureFixture[str], edit: str
):
    data = json.loads(gate.baseline.read_text())
    EDITS[edit][0](data)
    gate.baseline.write_text(json.dumps(data))
    assert gate() == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(gate.baseline) in error
    assert EDITS[edit][1] in error
    assert not gate.trained


def test_the_committed_baseline_is_one():
    assert load_baseline(PACKAGE.parent / "docs/gate/baseline.json").recipe == GateConfig().recipe


def test_records_of_runs_named_after_another_recipe_are_refused(baseline: Path):
    accepted = [Acceptance("2026-01-01", "the first", "0" * 64, 16)]
    records = [made_up_record(seed, recipe="paper") for seed in range(16)]
    write_baseline(baseline, Baseline("fast", SPEED, accepted, records))
    with pytest.raises(InputError, match=r"record 0 .paper-seed0-.*fast-seed0-"):
        load_baseline(baseline)


def test_mixed_code_is_refused(baseline: Path):
    accepted = [Acceptance("2026-01-01", "the first", "0" * 64, 16)]
    records = [*made_up_records(range(15)), made_up_record(15, code="1" * 64)]
    write_baseline(baseline, Baseline("fast", SPEED, accepted, records))
    with pytest.raises(InputError, match=r"record 15 .*training code is 111111111111, the first record's is 0000"):
        load_baseline(baseline)


def test_a_small_baseline_is_refused_before_any_training(gate: Gate, capsys: pytest.CaptureFixture[str]):
    accepted = [Acceptance("2026-01-01", "the first", "0" * 64, 10)]
    write_baseline(gate.baseline, Baseline("fast", SPEED, accepted, made_up_records(range(10))))
    assert gate() == 2
    assert "the baseline has 10 seeds: with fewer than 14 for the gate's 6" in capsys.readouterr().err
    assert not gate.trained


@pytest.mark.parametrize("name", ["nb.txt", "nb"])
def test_a_baseline_of_any_name_is_replaced_and_nothing_else_is(
    gate: Gate, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
):
    gate.baseline = tmp_path / name
    for reason in ("the first", "the second"):
        assert gate("--update-baseline", "--reason", reason) == 0
    gate.baseline.write_text("{}")
    assert gate("--update-baseline", "--reason", "the third") == 2
    assert f"{gate.baseline} is not a baseline" in capsys.readouterr().err
    assert gate.baseline.read_text() == "{}"


@pytest.mark.parametrize("problem", ["not JSON", "other format", "no records", "no code", "a list"])
def test_a_broken_baseline_is_refused_before_any_work(gate: Gate, capsys: pytest.CaptureFixture[str], problem: str):
    gate.baseline.write_text(broken(gate.baseline.read_text(), problem))
    assert gate() == 2
    output = capsys.readouterr()
    assert output.err.count("\n") == 1, output.err
    assert str(gate.baseline) in output.err
    assert not gate.trained
