"""Chunks on disk as they are finished, so that a process that is killed can be followed by another."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import filelock
from pydantic import TypeAdapter

from aa_core.certificates.chunk import Chunk
from aa_core.errors import InputError

_CHECKSUM = 16  # hexadecimal digits at the start of a line


@dataclass(frozen=True)
class _Line:
    seconds: float
    peak_mib: float
    chunk: Chunk


_LINE = TypeAdapter(_Line)


class Journal:
    """A file with a line for its key, then one a chunk in order, each with a checksum.

    A line is written and synced at once; what follows the first broken one (the process died while writing) is cut
    off when the file is opened.

    Attributes:
        n_chunks: chunks in the file.
        seconds: time spent on them.
        peak_mib: the largest peak memory of a process that judged them.
    """

    def __init__(self, file: BinaryIO, key: str) -> None:
        self._file = file
        self.n_chunks = 0
        self.seconds = 0.0
        self.peak_mib = 0.0
        end = 0
        if self._read_text() == key:
            end = file.tell()
            for line in self._lines():
                self._count(line)
                end = file.tell()
        file.truncate(end)
        if end == 0:
            self._write_text(key)

    def chunks(self) -> Iterator[Chunk]:
        """Read the chunks again, one at a time."""
        self._file.seek(0)
        self._read_text()
        for line in self._lines():
            yield line.chunk

    def append(self, chunk: Chunk, seconds: float, peak_mib: float) -> None:
        """Add a chunk, the time spent so far, and the peak memory of the process that judged it.

        Raises:
            InputError: the disk is full.
        """
        line = _Line(round(seconds, 3), peak_mib, chunk)
        self._write_text(json.dumps(dataclasses.asdict(line)))
        self._count(line)

    def _count(self, line: _Line) -> None:
        self.n_chunks += 1
        self.seconds = line.seconds
        self.peak_mib = max(self.peak_mib, line.peak_mib)

    def _lines(self) -> Iterator[_Line]:
        while (text := self._read_text()) is not None:
            yield _LINE.validate_json(text)

    def _read_text(self) -> str | None:
        """The next line; None at the end and where it is broken."""
        line = self._file.readline()
        checksum, _, data = line.removesuffix(b"\n").partition(b" ")
        whole = line.endswith(b"\n") and checksum.decode(errors="replace") == _checksum(data)
        return data.decode() if whole else None

    def _write_text(self, text: str) -> None:
        data = text.encode()
        try:
            self._file.seek(0, os.SEEK_END)
            self._file.write(f"{_checksum(data)} ".encode() + data + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(Path(self._file.name), error) from error


@contextmanager
def open_journal(path: Path, key: str) -> Iterator[Journal]:
    """Open or begin the journal of a piece of work, and delete it when the work is done.

    Args:
        path: the file.
        key: names the work; a journal of other work is begun anew.

    Raises:
        InputError: the file cannot be written, or another process works on the same.
    """
    lock = filelock.FileLock(path.with_name(f"{path.name}.lock"))  # left behind, so that no two ever hold it
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise InputError(f"another process works on {path}: wait until it is done") from error
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with _opened(path) as file:
            yield Journal(file, key)
        path.unlink()
    finally:
        lock.release()


def _opened(path: Path) -> BinaryIO:
    try:
        path.touch()
        return path.open("r+b")
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot write {path}: {error.strerror or error}; "
        "free some space, or name another cache folder with --cache or the environment variable AA_CACHE"
    )


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_CHECKSUM]
