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

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from aa_core.certificates.chunk import Chunk
from aa_core.certificates.enumeration import range_of
from aa_core.errors import InputError
from aa_core.locks import held_alone

_CHECKSUM = 64  # hexadecimal digits at the start of a line


@with_config(ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))  # holds for the records inside too
@dataclass(frozen=True)
class _Line:
    seconds: float
    peak_mib: float
    chunk: Chunk


_LINE = TypeAdapter(_Line)


class Journal:
    """A file with a line for its key, then one a chunk in order, each with a checksum of all until there.

    A line is written and synced at once. When the file is opened it is cut off before the first line that is not the
    next chunk: broken (the process died while writing), of another place in the file, or of other content.

    Attributes:
        n_chunks: chunks in the file.
        seconds: time spent on them.
        peak_mib: the largest peak memory of a process that judged them.
    """

    def __init__(self, file: BinaryIO, key: str, size: int, chunk_size: int, limit: int) -> None:
        self._file = file
        self._size, self._chunk_size, self._limit = size, chunk_size, limit
        self._checksum = ""
        self.n_chunks = 0
        self.seconds = 0.0
        self.peak_mib = 0.0
        end = 0
        if self._read_text() == key.encode():
            end = file.tell()
            while (line := self._read_chunk()) is not None:
                self._count(line)
                end = file.tell()
        file.truncate(end)
        if end == 0:
            self._checksum = ""
            self._write_text(key)

    def chunks(self) -> Iterator[Chunk]:
        """Read the chunks again, one at a time."""
        self._file.seek(0)
        self._file.readline()
        for _ in range(self.n_chunks):
            yield _LINE.validate_json(self._file.readline()[_CHECKSUM + 1 :]).chunk

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

    def _read_chunk(self) -> _Line | None:
        """The next line; None at the end and where it does not fit."""
        before = self._checksum
        try:
            text = self._read_text()
            line = None if text is None else _LINE.validate_json(text)
        except ValidationError:
            line = None
        if line is None or not self._is_next(line.chunk):
            self._checksum = before
            return None
        return line

    def _is_next(self, chunk: Chunk) -> bool:
        size = chunk.stop - chunk.start
        counts = [(sum(c.size for c in labels.values()), sum(c.errors for c in labels.values()))
                  for labels in chunk.counts.values()]  # fmt: skip
        return (
            (chunk.start, chunk.stop) == range_of(self.n_chunks, self._size, self._chunk_size)  # empty after the last
            and chunk.start <= chunk.least_index < chunk.stop
            and 0 <= chunk.errors <= size
            and min(chunk.errors, self._limit) <= len(chunk.failures) <= chunk.errors
            and all(chunk.start <= failure.index < chunk.stop for failure in chunk.failures)
            and all(count == (size, chunk.errors) for count in counts)
        )

    def _read_text(self) -> bytes | None:
        """The next line; None at the end and where it is broken or does not follow the one before."""
        line = self._file.readline()
        checksum, _, data = line.removesuffix(b"\n").partition(b" ")
        expected = self._following(data)
        if not line.endswith(b"\n") or checksum != expected.encode():
            return None
        self._checksum = expected
        return data

    def _following(self, data: bytes) -> str:
        """Checksum of a line that follows those until here."""
        return hashlib.sha256(self._checksum.encode() + data).hexdigest()

    def _write_text(self, text: str) -> None:
        data = text.encode()
        self._checksum = self._following(data)
        try:
            self._file.seek(0, os.SEEK_END)
            self._file.write(f"{self._checksum} ".encode() + data + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(Path(self._file.name), error) from error


@contextmanager
def open_journal(path: Path, key: str, size: int, chunk_size: int, limit: int) -> Iterator[Journal]:
    """Open or begin the journal of a piece of work, and delete it when the work is done and its result written.

    Args:
        path: the file.
        key: names the work; a journal of other work is begun anew.
        size: sequences of the domain.
        chunk_size: sequences a chunk.
        limit: most failures that are listed; a chunk that lists fewer than this asks for is judged again.

    Raises:
        InputError: the file cannot be written, or another process works on the same.
    """
    with held_alone(path.with_name(f"{path.name}.lock"), f"another process works on {path}: wait until it is done"):
        with _opened(path) as file:
            yield Journal(file, key, size, chunk_size, limit)
        path.unlink()


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
