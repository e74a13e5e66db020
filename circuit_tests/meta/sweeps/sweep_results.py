"""Results of sweeps as they could have come out, without training anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aa_core.circuits.state import State
from aa_core.sweeps.grid import FRACTION, Axis, field_value, grid
from aa_core.sweeps.record import PHASES, RunRecord, plain_config
from aa_core.sweeps.results import SweepResults, sweep_manifest
from aa_core.training.codehash import training_code_hash
from aa_core.training.config import TrainConfig

VALUES = tuple(float(f"{value:.4g}") for value in np.linspace(0.06, 0.99, 10))
N = 2000


def logistic(threshold: float, width: float = 0.02, bottom: float = 0.1, top: float = 0.99) -> Callable[[float], float]:
    return lambda x: bottom + (top - bottom) / (1 + np.exp((threshold - x) / width))


def synthetic_sweep(
    accuracy: Callable[[float], float],
    field: str = FRACTION,
    values: Sequence[float] = VALUES,
    seeds: int = 2,
    noise: float = 0.01,
) -> SweepResults:
    """A sweep whose accuracy on what is new follows a curve; the trained sums are right, and solved at step 100;
    what is right sooner is solved sooner."""
    rng = np.random.default_rng(0)
    axes = [Axis(field, tuple(values)), Axis("seed", tuple(range(seeds)))]
    records = []
    for config in map(plain_config, grid(TrainConfig(), axes)):
        new = float(np.clip(accuracy(float(field_value(config, field))) + rng.normal(0, noise), 0, 1))
        right = {name: (round(N * new), N) for name in ("exact/0-var/held-out", "2-var/held-out",
                 "2-var/one-restricted", "2-var/both-restricted")}  # fmt: skip
        phases = dict.fromkeys(PHASES, 100) | {"pool/0-var/held-out": round(100 / new) if new > 0.5 else None}
        phases["full-prefix/2-var"] = round(100 / new) if new > 0.5 else None
        seen = {"exact/0-var/seen": (N, N), "2-var/seen": (N, N)}
        records.append(RunRecord(config, "run", training_code_hash(), 1.0, 1, phases, {**seen, **right}, State.REFINED))
    return SweepResults(sweep_manifest("aa sweep f", TrainConfig(), axes), tuple(records))
