"""Results files of sweeps: as they are written, and those that no sweep writes."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from aa_core.cli.main import main
from aa_core.errors import InputError
from aa_core.sweeps.grid import FRACTION, FREQUENCY, Axis, field_value
from aa_core.sweeps.point import Failure
from aa_core.sweeps.record import PHASES
from aa_core.sweeps.results import SweepResults, load_results, save_results
from circuit_tests.meta.command_line import refused
from circuit_tests.meta.sweeps.sweep_results import logistic, synthetic_sweep


def changed(results: SweepResults, **fields: object) -> SweepResults:
    """Results whose second record is another."""
    first, second, *rest = results.records
    return dataclasses.replace(results, records=(first, dataclasses.replace(second, **fields), *rest))


IMPOSSIBLE: dict[str, tuple[Callable[[SweepResults], SweepResults], str]] = {
    "twice": (lambda r: changed(r, config=r.records[0].config), "there already"),
    "no point": (lambda r: changed(r, config={**r.records[1].config, "learning_rate": 0.5}), "no point of the sweep"),
    "no config": (lambda r: changed(r, config={}), "a field is missing"),
    "other code": (lambda r: changed(r, code="other"), "other code"),
    "5 of 0": (lambda r: changed(r, accuracies={"2-var/seen": (5, 0)}), "5 of 0"),
    "5 of 3": (lambda r: changed(r, accuracies={"2-var/seen": (5, 3)}), "5 of 3"),
    "no phases": (lambda r: changed(r, phases={}), "phases"),
    "late": (lambda r: changed(r, phases=dict.fromkeys(PHASES, 10**9)), "1000000000"),
    "base": (
        lambda r: dataclasses.replace(r, manifest=dataclasses.replace(r.manifest, base={"x": 1})),
        "base and axes",
    ),
    "axes": (
        lambda r: dataclasses.replace(r, manifest=dataclasses.replace(r.manifest, axes=(Axis("x.y", (1,)),))),
        "base and axes",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_results_that_no_sweep_writes_are_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, expected = IMPOSSIBLE[case]
    file = tmp_path / "f.json"
    save_results(file, change(synthetic_sweep(logistic(0.25))))
    message = refused(capsys, "sweep", "--verify", file)
    assert str(file) in message
    assert expected in message


def test_an_unfinished_sweep_is_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, file = synthetic_sweep(logistic(0.2, 0.015)), tmp_path / "f.json"
    save_results(file, dataclasses.replace(results, records=results.records[:-1]))
    assert "1 points of the sweep are missing" in refused(capsys, "sweep", "--verify", file)
    lost = [Failure(record.config, "training diverged") for record in results.records]
    save_results(file, dataclasses.replace(results, records=results.records[:-1], failures=(lost[-1],)))
    assert main(["sweep", "--verify", str(file)]) == 0
    assert "without 1 point that failed, such as: training diverged" in capsys.readouterr().out
    save_results(file, dataclasses.replace(results, records=results.records[:-2], failures=tuple(lost[-2:])))
    message = refused(capsys, "sweep", "--verify", file)
    assert "every point of split.train_fraction=0.99 failed: training diverged" in message


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        (2, r"at f = 0\.2\d+ \[0\.163, 0\.267\] and at 95 % within \["),
        (1, r"at f = 0\.2\d+ \(one run a value gives no"),
    ],
)
def test_the_fitted_threshold_is_printed(
    seeds: int, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_results(tmp_path / "f.json", synthetic_sweep(logistic(0.25, 0.015), seeds=seeds))
    main(["sweep", "--verify", str(tmp_path / "f.json")])
    assert re.search(expected, capsys.readouterr().out)


@pytest.mark.parametrize(("field", "value"), [(FRACTION, 1.0), (FREQUENCY, 0.0)])
def test_values_that_leave_nothing_to_judge_are_named(
    field: str, value: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = synthetic_sweep(logistic(0.25), field, (0.3, 0.5, value))
    names = ("exact/0-var/held-out", "0-var/held-out")
    records = [
        dataclasses.replace(record, accuracies={name: n for name, n in record.accuracies.items() if name not in names})
        if field == FRACTION and field_value(record.config, field) == value
        else record
        for record in results.records
    ]
    save_results(tmp_path / "f.json", dataclasses.replace(results, records=tuple(records)))
    assert f"{field}={value:g} leaves nothing to judge" in refused(capsys, "sweep", "--verify", tmp_path / "f.json")


def test_results_file_is_plain_json(tmp_path: Path) -> None:
    results = synthetic_sweep(logistic(0.25), seeds=1)
    save_results(tmp_path / "f.json", results)
    assert load_results(tmp_path / "f.json") == results
    plain = json.loads((tmp_path / "f.json").read_text())
    assert plain["manifest"]["axes"][0]["field"] == FRACTION
    (tmp_path / "f.json").write_text(json.dumps({**plain, "manifest": {}}))
    with pytest.raises(InputError, match=r"f\.json is not a results file of aa sweep \(manifest"):
        load_results(tmp_path / "f.json")


@pytest.mark.parametrize(("threshold", "code"), [(0.2, 0), (0.7, 1)])
def test_verify_says_whether_the_claims_hold(
    threshold: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, page = tmp_path / "results" / "f.json", tmp_path / "sweeps.md"
    save_results(results, synthetic_sweep(logistic(threshold, 0.015)))
    assert main(["sweep", "--verify", str(results), "--markdown", str(page)]) == code
    assert "sweep-f/half-way" in capsys.readouterr().out
    text = page.read_text()
    assert "](sweeps/f.svg)" in text
    assert (tmp_path / "sweeps" / "f.svg").read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert f"| leaking | sweep-f/high-end | {'3 of 3' if code else '5 of 5'} |" in text
    assert text.count("**fails**") == (2 if code else 0)
