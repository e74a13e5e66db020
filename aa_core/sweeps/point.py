"""One point of a sweep, as a worker does it: train or find the run, hand back its record, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from aa_core.errors import InputError
from aa_core.runs import RunStore, default_root
from aa_core.sweeps.kept import judging_code_hash, kept_record
from aa_core.sweeps.record import RunRecord, plain_config
from aa_core.training.config import TrainConfig
from aa_core.training.metrics import metrics_for


@dataclass(frozen=True)
class Failure:
    """A point that gave no record.

    Attributes:
        config: every field of the `TrainConfig`, nested.
        reason: one line that says why.
    """

    config: Mapping[str, Any]
    reason: str


@dataclass(frozen=True)
class Work:
    """How a worker does a point.

    Attributes:
        judge: whether to judge every claim on the run.
        threads: PyTorch's threads.
        cache: the worker's cache folder, None for the one that `AA_CACHE` or the platform names where it runs.
    """

    judge: bool = False
    threads: int = 1
    cache: Path | None = None


def run_point(config: TrainConfig, work: Work) -> RunRecord | Failure:
    """Train a run or find it in the worker's run store, and hand back what is kept of it.

    Whatever goes wrong is handed back too: one bad point must not end a sweep.
    """
    torch.set_num_threads(work.threads)
    judging_code_hash()  # of the sources as this process imported them: they may change while a run trains
    try:
        store = RunStore(metrics_for, root=work.cache or default_root())
        return kept_record(store.run(config, threads=work.threads), store.root, judge=work.judge)
    except InputError as error:
        return failure(config, str(error))
    except Exception as error:  # a fault of one point, of whatever kind, must not cost the others
        return failure(config, f"{type(error).__name__}: {error}")


def failure(config: TrainConfig, reason: str) -> Failure:
    """A point that failed, with the reason as one line."""
    return Failure(plain_config(config), " ".join(reason.split()))
