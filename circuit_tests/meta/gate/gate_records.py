"""Made-up records of runs, like those of one recipe with several seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from aa_core.circuits.state import State
from aa_core.claims.registry import CLAIMS
from aa_core.runs.key import run_name
from aa_core.statistics import Threshold, Verdict
from aa_core.sweeps.record import PHASES, JudgedClaim, RunRecord, plain_config
from aa_core.training.recipes import RECIPES

POOL = 2000
ACCURACIES = ("0-var/seen", "1-var/seen", "2-var/seen", "1-var/restricted", "exact/0-var/held-out")


def made_up_record(seed: int, recipe: str = "fast", code: str = "0" * 64) -> RunRecord:
    """A run that composes; nearly every claim holds, with values that vary from seed to seed."""
    rng, config = np.random.default_rng(seed), dataclasses.replace(RECIPES[recipe], seed=seed)
    return RunRecord(
        config=plain_config(config),
        run=run_name(config, code),
        code=code,
        seconds=100.0,
        threads=1,
        phases={name: 100 * int(rng.integers(15, 25)) + 1000 * place for place, name in enumerate(PHASES)},
        accuracies={name: (int(rng.binomial(POOL, 0.99)), POOL) for name in ACCURACIES},
        state=State.REFINED if rng.random() < 0.9 else State.COMPOSES,
        claims={claim.id: _claim(rng, claim.criterion.threshold) for claim in CLAIMS},
    )


def _claim(rng: np.random.Generator, threshold: Threshold) -> JudgedClaim:
    sign = -1 if threshold.comparison == "<=" else 1
    value = threshold.bound + sign * (1 + 0.2 * rng.standard_normal())
    return JudgedClaim(Verdict.HOLDS if threshold.accepts(value) else Verdict.FAILS, value)


def made_up_records(seeds: range, change: Callable[[RunRecord], RunRecord] = lambda record: record) -> list[RunRecord]:
    return [change(made_up_record(seed)) for seed in seeds]


def with_claim(record: RunRecord, name: str, **changes: object) -> RunRecord:
    """A record with one claim's verdict or value changed."""
    assert record.claims is not None
    claims = {**record.claims, name: dataclasses.replace(record.claims[name], **changes)}  # pyright: ignore[reportArgumentType]
    return dataclasses.replace(record, claims=claims)
