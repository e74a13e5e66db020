"""A run is judged once by the same code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aa_core.runs import Run
from aa_core.statistics import Verdict
from aa_core.sweeps import kept
from aa_core.sweeps.kept import kept_record
from aa_core.sweeps.record import RECORD, JudgedClaim, RunRecord, run_record

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
