"""Results as JSON and as a table in the terminal."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from aa_core.checkpoints import load_subject, save_checkpoint, weights_sha256
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.state import Diagnosis, Evidence, State
from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Claim, Criterion, Finding, Form, Result
from aa_core.claims.expectations import Expectation
from aa_core.claims.subjects import as_subject
from aa_core.cli.main import main
from aa_core.report.record import claim_record, json_report, state_record, subject_record
from aa_core.report.table import (
    STYLES,
    measured_text,
    pass_counts_table,
    print_results,
    results_table,
    state_texts,
    subject_line,
    summary_line,
)
from aa_core.statistics import Measurement, Threshold, Verdict, at_least, at_most, exact, judge, share
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.checkpoint_files import (
    SPLIT,
    TASK,
    hooked_state_dict,
    small_config,
    small_parameters,
    torch_bytes,
)

VERSIONS = {
    "python": platform.python_version(),
    **{name: version(name) for name in ("assign-and-add", "torch", "transformer_lens", "numpy", "scipy")},
}


def finding(quantity: str, measurement: Measurement, threshold: Threshold) -> Finding:
    def measure(subject: object) -> Measurement:
        raise AssertionError("a report measures nothing")

    verdict = judge(measurement, threshold, 0.01)
    return Finding(Criterion(quantity, measure, threshold), measurement, measurement.interval(0.01), verdict)


def result(verdict: Verdict, *findings: Finding, reason: str = "", name: str = "family/name") -> Result:
    criteria = [each.criterion for each in findings] or [finding("unused", exact(0), at_least(0)).criterion]
    claim = Claim(name, "It holds.", "paper", Form.LITERAL, criteria[0], "evidence", ("random",), tuple(criteria[1:]))
    return Result(claim, verdict, findings, reason)


RIGHT = share(np.arange(20) < 19, exhaustive=True, note="wrong: 3+3")
SAMPLED = Measurement(0.5, 100, 50)
FAILING = result(
    Verdict.FAILS,
    finding("share right", RIGHT, at_least(0.9)),
    finding("a sampled share", SAMPLED, at_least(0.8)),
    finding("a plain number", exact(2.0, note="least for b"), at_most(4)),
    name="family/failing",
)
SKIPPED = result(Verdict.SKIPPED, reason="needs a folder", name="family/skipped")


def loaded_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def record_of(path: Path, split: SplitConfig | None = None) -> dict[str, Any]:
    loaded = load_subject(path, split)
    return subject_record(loaded, as_subject(loaded))


# Records


def test_record_of_a_judged_claim():
    low, high = SAMPLED.interval(0.01) or (0, 0)
    assert claim_record(FAILING) == {
        "id": "family/failing",
        "statement": "It holds.",
        "form": "literal",
        "verdict": "fails",
        "quantity": "share right",
        "measured": 0.95,
        "threshold": ">= 0.9",
        "n": 20,
        "count": 19,
        "interval": None,
        "note": "wrong: 3+3",
        "itself": "holds",
        "conditions": [
            {
                "quantity": "a sampled share",
                "measured": 0.5,
                "threshold": ">= 0.8",
                "n": 100,
                "count": 50,
                "interval": (low, high),
                "note": "",
                "verdict": "fails",
            },
            {
                "quantity": "a plain number",
                "measured": 2.0,
                "threshold": "<= 4",
                "n": None,
                "count": None,
                "interval": None,
                "note": "least for b",
                "verdict": "holds",
            },
        ],
        "reason": "",
        "expected": None,
    }
    assert 0 < low < 0.5 < high < 1


def test_record_of_a_skipped_claim():
    assert claim_record(SKIPPED) == {
        "id": "family/skipped",
        "statement": "It holds.",
        "form": "literal",
        "verdict": "skipped",
        **dict.fromkeys(("quantity", "measured", "threshold", "n", "count", "interval", "note", "itself")),
        "conditions": [],
        "reason": "needs a folder",
        "expected": None,
    }


def test_record_of_an_expected_failure():
    entry = {"claim": "family/*", "model": "seed1", "expect": "fails", "reason": "it never binds"}
    record = claim_record(dataclasses.replace(FAILING, expectation=Expectation.model_validate(entry)))
    assert record == claim_record(FAILING) | {"expected": entry}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_become_null(value: float):
    odd = finding("odd", exact(value, note="why"), at_least(0))
    record = claim_record(result(Verdict.FAILS, odd, odd))
    claim = loaded_json(json_report({}, [record]))["claims"][0]
    assert claim["measured"] is None
    assert claim["conditions"][0]["measured"] is None
    assert claim["note"] == "why"


def test_json_is_subject_and_claims():
    subject, claims = {"path": "é"}, [claim_record(FAILING), claim_record(SKIPPED)]
    text = json_report(subject, claims)
    assert text.endswith("}\n")
    report = loaded_json(text)
    claims[0]["conditions"][0]["interval"] = list(claims[0]["conditions"][0]["interval"])
    assert report == {"subject": subject, "claims": claims}
    assert list(report) == ["subject", "claims"]


def test_subject_of_a_checkpoint_of_ours(tmp_path: Path):
    path = tmp_path / "step_50.safetensors"
    save_checkpoint(path, small_parameters(), small_config(), 50)
    record = record_of(path)
    assert record == {
        "path": str(path),
        "hash": weights_sha256(small_parameters()),
        "format": "assign-and-add",
        "step": 50,
        "steps": None,
        "state": state_record(Subject(small_parameters(), Split(TASK, SPLIT))),
        "task": dataclasses.asdict(TASK),
        "split_assumed": False,
        "split": dataclasses.asdict(SPLIT),
        "config": dataclasses.asdict(small_config()),
        "versions": VERSIONS,
    }
    assert loaded_json(json_report(record, []))["subject"]["config"]["checkpoint_every"] == [[10, 5], [50, 25]]


def test_subject_of_a_foreign_folder_is_its_last_checkpoint(tmp_path: Path):
    for seed, name in enumerate(("checkpoint_step_1.pth", "checkpoint_step_401.pth", "final.pth")):
        (tmp_path / name).write_bytes(torch_bytes(hooked_state_dict(small_parameters(seed))))
    record, last = record_of(tmp_path, SPLIT), record_of(tmp_path / "final.pth", SPLIT)
    state = last["state"] | {"first_steps": {"untrained": 1}}
    assert record == last | {"path": str(tmp_path), "steps": [1, 401, None], "state": state}
    assert (last["format"], last["step"], last["steps"]) == ("hooked-transformer", None, None)
    assert last["config"] is None
    assert last["split"] == dataclasses.asdict(SPLIT)
    assert not last["split_assumed"]


def test_state_of_a_folder_names_the_first_step_of_each(monkeypatch: pytest.MonkeyPatch):
    evidence = (Evidence("share right", 0.25, at_least(0.5)), Evidence("spread", math.nan, at_least(0.2)))
    found = [Diagnosis(state, evidence) for state in (State.UNTRAINED, State.ADDS, State.UNTRAINED, State.STUCK)]
    monkeypatch.setattr("aa_core.report.record.diagnose_each", lambda judged: found)
    record = state_record(
        TrajectorySubject((0, 3, 7, 8), (Subject(small_parameters(), Split(TASK, SPLIT)),) * 4), [0, 3, 7, None]
    )
    assert loaded_json(json.dumps(record)) == {
        "name": "stuck: variables collapsed",
        "evidence": [
            {"quantity": "share right", "measured": 0.25, "threshold": ">= 0.5", "met": False},
            {"quantity": "spread", "measured": None, "threshold": ">= 0.2", "met": False},
        ],
        "first_steps": {"untrained": 0, "adds": 3, "stuck: variables collapsed": None},
    }
    assert state_texts(record) == {
        "state": "stuck: variables collapsed (share right 0.25, not >= 0.5; spread undefined, not >= 0.2)",
        "first steps": "untrained 0; adds 3; stuck: variables collapsed the last",
    }


# Table


def printed(*records: dict[str, Any], **subject: object) -> list[str]:
    base = {"path": "m.pth", "format": "ours", "step": 7, "steps": None, "hash": "0123456789abcdef"}
    split = {"train_fraction": 0.7, "seed": 42, "never_left": "kl", "never_right": ""}
    console = Console(width=200, file=io.StringIO(), highlight=False)
    state = {"name": "adds", "evidence": [], "first_steps": None}
    print_results(console, base | {"split": split, "split_assumed": False, "state": state} | subject, records)
    return [line.strip() for line in console.file.getvalue().splitlines()]  # pyright: ignore


def row(lines: list[str], start: str) -> str:
    """The line that begins so, with single spaces."""
    found = [line for line in lines if line.startswith(start)]
    assert len(found) == 1, f"{len(found)} lines begin with {start!r}: {lines}"
    return " ".join(found[0].split())


def test_table_shows_conditions_that_do_not_hold():
    lines = printed(claim_record(FAILING))
    assert row(lines, "family/failing") == "family/failing 19/20 = 0.95 >= 0.9 fails (condition)"
    assert row(lines, "wrong:") == "wrong: 3+3"
    low, high = SAMPLED.interval(0.01) or (0, 0)
    assert row(lines, "and a sampled share") == f"and a sampled share 0.5 [{low:.4g}, {high:.4g}] >= 0.8 fails"
    assert not any("a plain number" in line for line in lines), "a condition that holds takes room"


def test_ids_are_whole_and_values_are_seen_in_a_narrow_terminal():
    name = "generalisation/0-var-held-out-off-diagonal"
    long = finding(
        "a condition with a name that is far longer than any id, so that it must be wrapped", RIGHT, at_least(1)
    )
    claim = claim_record(result(Verdict.FAILS, finding("share right", RIGHT, at_least(0.9)), long, name=name))
    console = Console(width=100, file=io.StringIO(), highlight=False)
    console.print(results_table([claim]))
    text = console.file.getvalue()  # pyright: ignore
    assert name in text
    assert text.count("19/20") == 2, text
    assert text.count("0.95") == 2, text


def test_table_without_notes_of_what_holds():
    claim = result(Verdict.HOLDS, finding("share right", RIGHT, at_least(0.9)))
    lines = printed(claim_record(claim))
    assert row(lines, "family/name") == "family/name 19/20 = 0.95 >= 0.9 holds"
    assert not any("wrong" in line for line in lines)


def test_table_gives_the_reason_of_a_skipped_claim():
    assert row(printed(claim_record(SKIPPED)), "family/skipped") == "family/skipped needs a folder skipped"


def test_table_names_models_where_records_do():
    lines = printed(claim_record(FAILING) | {"model": "seed 3"}, claim_record(SKIPPED) | {"model": "seed 4"})
    assert row(lines, "model") == "model claim measured threshold verdict"
    assert row(lines, "seed 3") == "seed 3 family/failing 19/20 = 0.95 >= 0.9 fails (condition)"
    assert row(lines, "seed 4") == "seed 4 family/skipped needs a folder skipped"
    assert row(lines, "and a sampled share").endswith("fails"), "a condition stands below its claim"


def test_table_ends_with_counts():
    records = [claim_record(each) for each in (FAILING, SKIPPED, SKIPPED)]
    assert printed(*records)[-2] == summary_line(records) == "1 fails, 2 skipped"
    assert printed(*records)[-1].startswith("aa claims ID says"), "where something fails a hint follows"
    holds = claim_record(result(Verdict.HOLDS, finding("q", RIGHT, at_least(0.9))))
    assert "aa search" in printed(holds)[-1], "where all holds another"


def test_counts_tell_what_was_expected():
    expectation = Expectation(claim="*", reason="known")
    verdicts = [Verdict.HOLDS, Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED]
    judged = [dataclasses.replace(result(verdict), expectation=expectation) for verdict in verdicts]
    records = [claim_record(each) for each in (*judged, result(Verdict.HOLDS), result(Verdict.FAILS))]
    expected = "1 holds, 2 holds (expected to fail), 1 fails, 1 fails (expected), 1 undecided (expected)"
    assert summary_line(records) == expected


@pytest.mark.parametrize(
    ("verdict", "text"), [(Verdict.FAILS, "fails (expected)"), (Verdict.HOLDS, "holds (expected to fail)")]
)
def test_table_marks_what_is_expected(verdict: Verdict, text: str):
    expectation = Expectation(claim="*", reason="known")
    judged = dataclasses.replace(result(verdict, finding("q", RIGHT, at_least(0.9))), expectation=expectation)
    assert row(printed(claim_record(judged)), "family/name") == f"family/name 19/20 = 0.95 >= 0.9 {text}"


def test_markup_is_text():
    note = exact(0.0, note="[bold]note[/bold]")
    odd = claim_record(result(Verdict.FAILS, finding("[red]q", note, at_least(1)), name="[green]f/n"))
    odd["conditions"] = [{**odd, "quantity": "[link=x]condition[/link]"}]
    lines = printed(odd, path="/models/[red]mine[/red]/[/]")
    for text in ("/models/[red]mine[/red]/[/]: ours", "[green]f/n", "[bold]note[/bold]", "[link=x]condition[/link]"):
        assert any(text in line for line in lines), f"{text} is not in {lines}"


@pytest.mark.parametrize(
    ("measurement", "text"),
    [
        (exact(math.nan), "undefined"),
        (exact(6.88512, 12), "6.885 (n=12)"),
        (exact(10.0), "10"),
        (RIGHT, "19/20 = 0.95"),
        (Measurement(0.25, 400, spread=0.01), "0.25 [0.2241, 0.2759]"),
    ],
)
def test_measured_text(measurement: Measurement, text: str):
    assert measured_text(claim_record(result(Verdict.HOLDS, finding("q", measurement, at_least(0))))) == text


def test_subject_line(tmp_path: Path):
    for step in (0, 5):
        save_checkpoint(tmp_path / f"step_{step}.safetensors", small_parameters(), small_config(), step)
    record = record_of(tmp_path)
    end = f"weights {record['hash'][:12]}; split: f=0.6, seed 3, never left e, never right b"
    assert subject_line(record) == f"{tmp_path}: assign-and-add, 2 checkpoints, the last at step 5, {end}"
    record |= {"steps": None, "step": None, "split": record["split"] | {"never_left": ""}}
    assert subject_line(record) == f"{tmp_path}: assign-and-add, step unknown, {end}".replace("left e", "left -")


# Verdicts


def test_every_verdict_has_a_style():
    assert list(STYLES) == [verdict.value for verdict in Verdict] == ["holds", "fails", "undecided", "skipped"]


def test_verify_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "untrained.safetensors"
    save_checkpoint(path, small_parameters(), small_config(), 0)
    wanted = ["--claims", "qk-identity/z,order/2-var-last", "--json", str(tmp_path / "r.json")]
    assert main(["verify", "--checkpoint", str(path), *wanted]) == 1
    report = loaded_json((tmp_path / "r.json").read_text())
    assert {claim["id"]: claim["verdict"] for claim in report["claims"]} == {
        "qk-identity/z": "fails",
        "order/2-var-last": "skipped",
    }
    assert report["subject"] == loaded_json(json.dumps(record_of(path)))
    lines = capsys.readouterr().out.splitlines()
    state = state_texts(report["subject"]["state"])["state"]
    assert lines[:2] == [subject_line(report["subject"]), f"state: {state}"]
    assert lines[-2] == "1 fails, 1 skipped"


def test_several_models_are_counted_by_claim() -> None:
    verdicts = {"f/all": ["holds"] * 3, "f/some": ["holds", "fails", "holds"], "f/none": ["fails", "skipped", "fails"]}
    records = [
        {**claim_record(result(Verdict(verdict), name=name)), "model": f"seed{seed}"}
        for name, row in verdicts.items()
        for seed, verdict in enumerate(row)
    ]
    console = Console(width=120, file=io.StringIO(), highlight=False)
    console.print(pass_counts_table(records))
    text = " ".join(console.file.getvalue().split())  # pyright: ignore
    rows = ["f/none 0 of 2 [0.000, 0.959]", "f/some 2 of 3 [", "all others (1) every one of 3 ["]  # least first
    places = [text.find(row) for row in rows]
    assert -1 not in places, text
    assert places == sorted(places), text
