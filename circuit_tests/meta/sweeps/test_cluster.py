"""A sweep on a Dask cluster of two worker processes that share nothing with the sweep but what they send back."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aa_core.errors import InputError
from aa_core.sweeps import cluster
from aa_core.sweeps.execution import run_points
from aa_core.sweeps.grid import grid, parse_axis
from aa_core.sweeps.point import Failure, Work, run_point
from aa_core.sweeps.record import RunRecord
from circuit_tests.meta.tiny import TINY

START = 120
"""Seconds that a scheduler may take to start: a bound on a hang, far above what a busy machine takes."""
ROOT = Path(__file__).parents[3]
POINTS = grid(TINY, [parse_axis("seed=0-2"), parse_axis("learning_rate=3e-3,1e30")])


class Cluster(NamedTuple):
    """Address of the scheduler, and its workers, each with a cache of its own."""

    address: str
    workers: list[subprocess.Popen[bytes]]
    caches: list[Path]


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    processes: list[subprocess.Popen[bytes]] = []

    def start(program: str, *arguments: str, cache: Path) -> None:
        environment = {**os.environ, "AA_CACHE": str(cache), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments, "--host", "127.0.0.1"]
        processes.append(subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.DEVNULL))

    caches = [folder / f"cache-{number}" for number in range(2)]
    try:
        address_file = folder / "scheduler.json"
        start("dask_scheduler", "--port", "0", "--no-dashboard", "--no-show", "--scheduler-file", str(address_file),
              cache=folder / "unused")  # fmt: skip
        for _ in range(round(START / 0.05)):
            if address_file.exists() and address_file.read_bytes().endswith(b"}"):
                break
            assert processes[0].poll() is None, "the scheduler ended"
            time.sleep(0.05)
        assert address_file.exists(), f"the scheduler did not start within {START} s"
        address = json.loads(address_file.read_bytes())["address"]
        for cache in caches:
            start("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", cache=cache)
        yield Cluster(address, processes[1:], caches)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def by_config(points: list[RunRecord | Failure]) -> dict[str, Any]:
    """Points without the time that they took."""
    return {
        json.dumps(point.config): dataclasses.replace(point, seconds=0) if isinstance(point, RunRecord) else point
        for point in points
    }


@pytest.mark.slow
def test_cluster_gives_what_this_machine_gives_though_a_worker_dies(two_workers: Cluster, tmp_path: Path) -> None:
    here = [run_point(config, Work(cache=tmp_path)) for config in POINTS]
    there: list[RunRecord | Failure] = []
    for point in run_points(POINTS, Work(), scheduler=two_workers.address):
        if not there:
            two_workers.workers[0].kill()
        there.append(point)
    assert by_config(there) == by_config(here)
    assert len(there) == len(POINTS), "a finished point was lost or came twice"
    assert sum(isinstance(point, Failure) for point in there) == len(POINTS) / 2, "half of the points diverge"
    assert len(list(two_workers.caches[1].glob("runs/*/manifest.json"))) >= 1, "a worker keeps runs in its own cache"


def test_point_that_a_cluster_gives_up_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: Future[Any] = Future()
    monkeypatch.setattr(cluster.DaskDistributedBackend, "submit", lambda self, func, callback: lost)
    handed_back: list[list[Failure]] = []
    backend = cluster.ClusterBackend.__new__(cluster.ClusterBackend)
    batch = type("Batch", (), {"items": [(run_point, (TINY, Work()), {})]})
    assert backend.submit(batch, handed_back.append) is lost
    assert not handed_back
    lost.set_exception(RuntimeError("the worker\ndied"))
    [[failure]] = handed_back
    assert failure.reason == "lost by the cluster: the worker died"
    assert failure.config["seed"] == TINY.seed


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "foo://127.0.0.1:9", ""])
def test_scheduler_that_is_not_there(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT", 0.2)
    with pytest.raises(InputError, match=r"no Dask scheduler answers there \(.+\); expected an address") as refusal:
        next(run_points([TINY], Work(), scheduler=address))
    assert "\n" not in str(refusal.value)
