"""Points of a sweep through joblib: on the cores of this machine or, by the same code, on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from typing import Any, cast

from joblib import Parallel, cpu_count, delayed, parallel_config

from aa_core.errors import InputError
from aa_core.sweeps.point import Failure, Work, run_point
from aa_core.sweeps.record import RunRecord
from aa_core.training.codehash import training_code_hash
from aa_core.training.config import TrainConfig


def run_points(
    configs: Sequence[TrainConfig], work: Work, *, jobs: int | None = None, scheduler: str | None = None
) -> Iterator[RunRecord | Failure]:
    """Do points, and hand each back as soon as it is done, in no particular order.

    Args:
        configs: the points.
        work: how to do each.
        jobs: processes on this machine, None for one to every `work.threads` cores.
        scheduler: address of a Dask scheduler whose workers do the points instead.

    Raises:
        InputError: the cluster cannot be used, or a process of this machine died.
    """
    with ExitStack() as stack:
        place: dict[str, Any] = {"backend": "loky", "inner_max_num_threads": work.threads}
        if scheduler is not None:
            from aa_core.sweeps.cluster import cluster_backend

            place = {"backend": stack.enter_context(cluster_backend(scheduler))}
        n_jobs = jobs or max(1, cpu_count() // work.threads)
        with parallel_config(**place, n_jobs=n_jobs):
            parallel: Any = Parallel(return_as="generator_unordered", pre_dispatch="all", batch_size=cast(Any, 1))
        try:
            parent = os.getpid() if scheduler is None else None
            yield from map(_same_code, parallel(delayed(_run)(config, work, parent) for config in configs))
        except BrokenExecutor as error:
            raise InputError(
                "a process of the sweep died, for want of memory perhaps; what is finished is kept: "
                "run the same command again, with fewer --jobs"
            ) from error


def _run(config: TrainConfig, work: Work, parent: int | None) -> RunRecord | Failure:
    """Do a point, unless the process that asked for it was killed: then its workers end, too."""
    if parent is not None and parent not in (os.getpid(), os.getppid()):
        os._exit(1)
    return run_point(config, work)


def _same_code(point: RunRecord | Failure) -> RunRecord | Failure:
    """A record by other training code, as of a worker that joined later, is none of this sweep."""
    if isinstance(point, RunRecord) and point.code != training_code_hash():
        return Failure(point.config, "a worker has other training code: install this version there")
    return point
