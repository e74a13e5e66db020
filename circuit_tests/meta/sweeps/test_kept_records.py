"""A run is judged once by the same code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aa_core.errors import InputError
from aa_core.runs import Run
from aa_core.statistics import Verdict
from aa_core.sweeps import kept, point
from aa_core.sweeps.kept import kept_record
from aa_core.sweeps.point import Work, run_point
from aa_core.sweeps.record import RECORD, JudgedClaim, RunRecord, run_record
from circuit_tests.meta.tiny import TINY

CLAIMS = {"accuracy/0-var": JudgedClaim(Verdict.HOLDS, 0.99)}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What records were made for: with claims (one stands for all) or without."""
    calls: list[bool] = []

    def counted(run: Run, *, judge: bool) -> RunRecord:
        calls.append(judge)
        return replace(run_record(run, judge=False), claims=CLAIMS if judge else None)

    monkeypatch.setattr(kept, "run_record", counted)
    monkeypatch.setattr(kept, "judging_code_hash", lambda: "a" * 64)
    return calls


def test_a_record_is_made_once(reference: Run, tmp_path: Path, made: list[bool]) -> None:
    first = kept_record(reference, tmp_path, judge=True)
    assert first.claims == CLAIMS
    assert kept_record(reference, tmp_path, judge=True) == first
    without = kept_record(reference, tmp_path, judge=False)
    assert without.claims is None, "the same, whether judged before or not"
    assert without == run_record(reference, judge=False)
    assert made == [True]


def test_claims_are_judged_when_they_are_asked_for(reference: Run, tmp_path: Path, made: list[bool]) -> None:
    assert kept_record(reference, tmp_path, judge=False).claims is None
    assert kept_record(reference, tmp_path, judge=True).claims is not None
    assert made == [False, True]


def test_other_code_judges_anew(
    reference: Run, tmp_path: Path, made: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_record(reference, tmp_path, judge=False)
    monkeypatch.setattr(kept, "judging_code_hash", lambda: "b" * 64)
    kept_record(reference, tmp_path, judge=False)
    assert made == [False, False]


@pytest.mark.parametrize("content", [b"", b"{}", b'{"run": 1}', b"\xff"])
def test_a_damaged_record_is_made_anew(reference: Run, tmp_path: Path, made: list[bool], content: bytes) -> None:
    record = kept_record(reference, tmp_path, judge=False)
    [path] = (tmp_path / "records").iterdir()
    path.write_bytes(content)
    assert kept_record(reference, tmp_path, judge=False) == record
    assert made == [False, False]
    assert RECORD.validate_json(path.read_bytes()) == record, "and kept again"


def test_a_record_of_another_config_is_not_believed(reference: Run, tmp_path: Path, made: list[bool]) -> None:
    record = kept_record(reference, tmp_path, judge=False)
    [path] = (tmp_path / "records").iterdir()
    for other in (replace(record, config={**record.config, "seed": 7}), replace(record, phases={})):
        path.write_bytes(RECORD.dump_json(other))
        assert kept_record(reference, tmp_path, judge=False) == record
    assert made == [False] * 3


def test_a_run_trained_anew_is_judged_anew(reference: Run, tmp_path: Path, made: list[bool]) -> None:
    kept_record(reference, tmp_path, judge=False)
    files = {name: replace(record, sha256="0" * 64) for name, record in reference.manifest.files.items()}
    kept_record(replace(reference, manifest=replace(reference.manifest, files=files)), tmp_path, judge=False)
    assert made == [False, False], "the record of the weights that were replaced"


def test_the_judging_code_is_hashed_before_a_run_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Store:
        def __init__(self, *args: object, **options: object) -> None:
            calls.append("store")
            raise InputError("no store")

    monkeypatch.setattr(point, "judging_code_hash", lambda: calls.append("hash"))
    monkeypatch.setattr(point, "RunStore", Store)
    run_point(TINY, Work())
    assert calls == ["hash", "store"]
