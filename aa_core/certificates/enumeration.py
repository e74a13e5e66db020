"""All chunks of a domain in order, judged by several processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import NamedTuple

import numpy as np
import torch

from aa_core.certificates.catalogue import exposure_of
from aa_core.certificates.chunk import Chunk, chunk_of, model_of
from aa_core.certificates.domain import Domain
from aa_core.certificates.exposure import Exposure
from aa_core.certificates.memory import peak_mib
from aa_core.checkpoints import Checkpoint
from aa_core.errors import InputError
from aa_core.runs.environment import torch_threads


class Judgement(NamedTuple):
    """A chunk, and the peak resident memory until then, in MiB, of the process that judged it."""

    chunk: Chunk
    peak_mib: float


@dataclass(frozen=True, eq=False)
class Work:
    """What a process needs to judge any chunk.

    Attributes:
        domain: the sequences.
        weights: of the model, by name.
        source: of the model, for messages.
        exposure: what training showed.
        limit: most failures to list of a chunk.
    """

    domain: Domain
    weights: dict[str, np.ndarray]
    source: str
    exposure: Exposure
    limit: int


def work_of(domain: Domain, checkpoint: Checkpoint, limit: int) -> Work:
    """The work on a domain with a model."""
    weights = {name: weight.numpy() for name, weight in checkpoint.parameters.items()}
    return Work(domain, weights, str(checkpoint.path), exposure_of(checkpoint.split), limit)


def n_chunks(size: int, chunk_size: int) -> int:
    """Chunks of a domain."""
    return -(-size // chunk_size)


def range_of(number: int, size: int, chunk_size: int) -> tuple[int, int]:
    """First index and index after the last of a chunk."""
    return number * chunk_size, min((number + 1) * chunk_size, size)


def ranges_of(size: int, chunk_size: int) -> list[tuple[int, int]]:
    """First index and index after the last of each chunk."""
    return [range_of(number, size, chunk_size) for number in range(n_chunks(size, chunk_size))]


def judged_chunks(work: Work, ranges: Sequence[tuple[int, int]], jobs: int) -> Iterator[Judgement]:
    """Judge chunks, one thread a process, and yield them in order.

    Args:
        work: see `Work`.
        ranges: first index and index after the last of each chunk.
        jobs: processes; 1 is this one.

    Raises:
        InputError: a logit is not finite, or a process was ended from outside.
    """
    jobs = min(jobs, len(ranges))
    if jobs <= 1:
        worker = _Worker(work)
        with torch_threads(1):
            yield from map(worker.judge, ranges)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start, (work,)) as pool:
        try:
            yield from pool.map(_judge, ranges)
        except BrokenProcessPool as error:
            raise InputError("a worker process was ended: run the same command again to go on, or --jobs 1") from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class _Worker:
    def __init__(self, work: Work) -> None:
        self.work = work
        weights = {name: torch.from_numpy(weight) for name, weight in work.weights.items()}
        self.model = model_of(work.domain.task, weights, work.source)

    def judge(self, indices: tuple[int, int]) -> Judgement:
        chunk = chunk_of(self.work.domain, self.model, self.work.exposure, *indices, self.work.limit)
        return Judgement(chunk, peak_mib())


_workers: list[_Worker] = []  # of a worker process, which has no other place to keep its one model between chunks


def _start(work: Work) -> None:
    """Prepare a worker process; it leaves an interrupt to its parent and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _workers.append(_Worker(work))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _judge(indices: tuple[int, int]) -> Judgement:
    return _workers[0].judge(indices)
