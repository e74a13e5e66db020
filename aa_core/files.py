"""Files that are either whole or absent, and errors that name them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from aa_core.errors import InputError


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader, or a crash at any moment, sees the old content or all of the new.

    Raises:
        InputError: the folder or the file cannot be written, the path is a folder or a device, or the disk is full;
            nothing is left behind.
    """
    check_writable(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; free some space or choose another place"
        ) from error


def check_writable(path: Path) -> None:
    """Refuse, before any work, a path that `write_atomically` could not or should not replace.

    Raises:
        InputError: the path is a folder, a device or a pipe, or nothing can be written where it would be.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"cannot write {path}: it is there and not a regular file; choose another place")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}; choose another place") from error


def read_bytes(path: Path) -> bytes:
    """Content of a file.

    Raises:
        InputError: there is no such file, it is a folder, or it cannot be read.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe or a device may never end
            raise InputError(f"cannot read {path}: not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
