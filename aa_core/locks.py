"""Locks in the cache folder that two processes never hold at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from aa_core.errors import InputError


@contextmanager
def held_alone(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock file, which the operating system frees when its holder dies.

    The file is left behind, so that no two processes ever hold locks on different files of the same name.

    Args:
        path: the lock file; its folder is made if need be.
        busy: what is said where another process holds it.

    Raises:
        InputError: another process holds it, or the file cannot be made.
    """
    lock = filelock.FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise InputError(busy) from error
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; "
            "name another cache folder with --cache or the environment variable AA_CACHE"
        ) from error
    try:
        yield
    finally:
        lock.release()
