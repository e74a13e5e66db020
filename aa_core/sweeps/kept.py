"""Records of runs kept beside the run store, so that a run is judged once by the same code."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pydantic import ValidationError

from aa_core.errors import InputError
from aa_core.files import read_bytes, write_atomically
from aa_core.runs import Run
from aa_core.sweeps.record import RECORD, RunRecord, check_record, plain_config, run_record
from aa_core.training.codehash import code_hash


@functools.cache
def judging_code_hash() -> str:
    """Hash, 64 hexadecimal digits, of the code that makes a record, and of the versions that compute it."""
    versions = f"{torch.__version__} {np.__version__}"
    return hashlib.sha256(f"{code_hash((run_record.__module__,))} {versions}".encode()).hexdigest()


def kept_record(run: Run, root: Path, *, judge: bool) -> RunRecord:
    """The record of a finished run: the kept one if this code made it, else a new one, which is kept.

    Args:
        run: the run.
        root: the cache folder; records are in `records/RUN-HASH.json` of it, where HASH is of the code that judges and
            of the run's files.
        judge: as of `run_record`.

    Raises:
        InputError: a checkpoint cannot be read, or the record cannot be written.
    """
    path = root / "records" / f"{run.folder.name}-{_hash(run)}.json"
    record = _read(path)
    if record is None or not _is_of(record, run) or (judge and record.claims is None):
        record = run_record(run, judge=judge)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, RECORD.dump_json(record))
    return record if judge else replace(record, claims=None)


def _hash(run: Run) -> str:
    """16 hexadecimal digits that differ where the judging code does, or a run of the same name was trained anew."""
    files = "".join(f"{name} {record.sha256} " for name, record in sorted(run.manifest.files.items()))
    return hashlib.sha256(f"{judging_code_hash()} {files}".encode()).hexdigest()[:16]


def _is_of(record: RunRecord, run: Run) -> bool:
    same = (record.run, record.code) == (run.folder.name, run.manifest.code)
    return same and record.config == plain_config(run.config)


def _read(path: Path) -> RunRecord | None:
    """A kept record, None where there is none or it is damaged."""
    if not path.is_file():
        return None
    try:
        record = RECORD.validate_json(read_bytes(path))
        check_record(record)
    except (ValidationError, InputError):
        return None
    return record
