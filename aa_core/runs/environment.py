"""What a run is trained on: device, threads and versions, which the last bits of its weights depend on."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from aa_core.errors import InputError


def usable_device(name: str) -> torch.device:
    """The device `cpu`, `cuda` or `cuda:N`.

    Raises:
        InputError: there is no such device.
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device is {name!r}, expected cpu, cuda or cuda:N") from error
    n_devices = {"cpu": 1, "cuda": torch.cuda.device_count()}.get(device.type, 0)
    if (device.index or 0) >= n_devices:
        raise InputError(f"device {name} is not available to PyTorch here: use cpu")
    return device


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Let PyTorch use so many threads, and as many as before afterwards.

    Raises:
        InputError: `threads` is below 1.
    """
    if threads < 1:
        raise InputError(f"threads is {threads}, expected at least 1")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def versions() -> dict[str, str]:
    """Versions of what computes, and the processor's instruction set that PyTorch uses."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }
