"""The command with made-up runs in place of trainings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from aa_core.cli.main import main
from aa_core.gate.invariant import Outcome
from aa_core.sweeps.point import Failure, Work
from aa_core.sweeps.record import RunRecord
from aa_core.training.config import TrainConfig
from circuit_tests.meta.gate.gate_records import made_up_record

Change = Callable[[RunRecord], RunRecord | Failure]


SPEED = 1.7


FINE = [Outcome("sampler/labels", "small", True, "80,000 labels")]


MOVED = [Outcome("sampler/labels", "small", False, "12 labels are wrong, such as 3 for 1+1")]


def same(record: RunRecord) -> RunRecord:
    return record


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
