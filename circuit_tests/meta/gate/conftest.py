"""What tests of the gate share."""

from __future__ import annotations

from pathlib import Path

import pytest

from aa_core.gate.baseline import Acceptance, Baseline, write_baseline
from circuit_tests.meta.gate.gate_records import made_up_records
from circuit_tests.meta.gate.made_up_gate import SPEED, Gate


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    path = tmp_path / "baseline.json"
    accepted = [Acceptance("2026-01-01", "the first", "0" * 64, 16)]
    write_baseline(path, Baseline("fast", SPEED, accepted, made_up_records(range(16))))
    return path


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, baseline: Path) -> Gate:
    return Gate(monkeypatch, baseline)
