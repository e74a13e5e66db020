"""Records of runs kept beside the run store, so that a run is judged once by the same code."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pydantic import ValidationError

from aa_core.files import read_bytes, write_atomically
from aa_core.runs import Run
from aa_core.sweeps.record import RECORD, RunRecord, run_record
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
        root: the cache folder; records are in `records/RUN-HASH.json` of it.
        judge: as of `run_record`.

    Raises:
        InputError: a checkpoint cannot be read, or the record cannot be written.
    """
    path = root / "records" / f"{run.folder.name}-{judging_code_hash()[:16]}.json"
    record = _read(path)
    if record is None or record.run != run.folder.name or (judge and record.claims is None):
        record = run_record(run, judge=judge)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, RECORD.dump_json(record))
    return record if judge else replace(record, claims=None)


def _read(path: Path) -> RunRecord | None:
    """A kept record, None where there is none or it is damaged."""
    if not path.is_file():
        return None
    try:
        return RECORD.validate_json(read_bytes(path))
    except ValidationError:
        return None
