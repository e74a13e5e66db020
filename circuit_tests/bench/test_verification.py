"""All claims on one checkpoint, in units of one pass of the hooked model over as many sequences as the claims use."""

from __future__ import annotations

import statistics
import time

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from aa_core.checkpoints import load_trajectory
from aa_core.circuits.subject import Subject
from aa_core.claims.registry import CLAIMS, interval_alpha
from aa_core.claims.verification import verify
from aa_core.fixtures import fixture_folder
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.task.sampling import KINDS, POOLS

ROUNDS = 3

pytestmark = pytest.mark.bench


def test_verification(benchmark: BenchmarkFixture) -> None:
    last = load_trajectory(fixture_folder()).final
    model = HookedAssignAndAdd(last.task, last.model, last.parameters)
    warm = Subject(last.parameters, last.split)
    runs = [*warm.full_prefixes(KINDS), *(run for name in POOLS if (run := warm.pool(name)) is not None)]
    tokens = torch.cat([torch.from_numpy(run.sequences.tokens) for run in runs])

    def hooked_pass() -> float:
        start = time.perf_counter()
        with torch.no_grad():
            for chunk in tokens.split(512):
                model(chunk)
        return time.perf_counter() - start

    benchmark.pedantic(
        lambda: verify(Subject(last.parameters, last.split), CLAIMS, interval_alpha()), rounds=ROUNDS, warmup_rounds=1
    )
    seconds = statistics.median(benchmark.stats.stats.data)  # pyright: ignore[reportOptionalMemberAccess]
    passes = seconds / statistics.median(hooked_pass() for _ in range(ROUNDS))
    benchmark.extra_info.update(hooked_passes=round(passes, 2))
    print(f"\nall claims on one checkpoint: {seconds:.1f} s, {passes:.1f} hooked passes over pools and full prefixes")
    assert passes < 4
