"""A Dask cluster that somebody else started, as a place for joblib to run points."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, cast

from joblib._dask import DaskDistributedBackend

from aa_core.errors import InputError
from aa_core.sweeps.point import failure
from aa_core.training.codehash import training_code_hash

try:
    from distributed import Client
    from distributed.comm.core import connect
except ImportError as error:
    raise InputError(
        "--scheduler needs Dask, which is not installed: run pip install -c constraints.txt -e '.[cluster]'"
    ) from error

CONNECT = 5.0  # seconds that a scheduler may take to answer
JOIN = 60.0  # seconds that the first worker may take to join


class ClusterBackend(DaskDistributedBackend):
    """joblib's backend, which by itself would wait forever for a task that Dask gives up on.

    Dask does where the workers that a task was on died, several in a row, or cannot import its code.
    """

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Future[Any]:
        """Submit a batch of one point; where the cluster loses it, its result is a `Failure`."""
        future = super().submit(func, callback)
        [(_, (config, *_), _)] = func.items

        def hand_back(done: Future[Any]) -> None:
            if callback is not None and (error := done.exception()) is not None:
                callback([failure(config, f"lost by the cluster: {error}")])

        future.add_done_callback(hand_back)
        return future


@contextmanager
def cluster_backend(address: str) -> Iterator[ClusterBackend]:
    """Connect to a cluster whose workers have this training code; workers may join and leave afterwards.

    Args:
        address: of the scheduler, such as `tcp://10.0.0.1:8786`.

    Raises:
        InputError: no scheduler answers, no worker joins, or a worker has other training code.
    """
    try:
        asyncio.run(_greet(address))
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise InputError(
            f"--scheduler {address}: no Dask scheduler answers there ({_why(error)}); "
            "expected an address such as tcp://10.0.0.1:8786, which dask scheduler prints"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=JOIN)
        except TimeoutError as error:
            raise InputError(
                f"--scheduler {address}: no worker joined within {JOIN:g} s: start some with dask worker {address}"
            ) from error
        _check_code(client, address)
        yield ClusterBackend(client=client)


async def _greet(address: str) -> None:
    """Connect once, since a client waits forever for what is no scheduler but takes connections."""
    communication = await asyncio.wait_for(connect(address, timeout=CONNECT), CONNECT)
    await communication.close()


def _why(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error)


def _check_code(client: Client, address: str) -> None:
    hashes = cast(dict[str, Any], client.run(training_code_hash, on_error="return"))
    for worker, found in hashes.items():
        if isinstance(found, Exception):
            raise InputError(f"--scheduler {address}: worker {worker} cannot run aa_core ({found}): install it there")
        if found != training_code_hash():
            raise InputError(f"--scheduler {address}: worker {worker} has other training code: install this version")
