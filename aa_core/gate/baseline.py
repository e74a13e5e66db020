"""The committed baseline: runs of code that was accepted, and why it was."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from aa_core.errors import InputError
from aa_core.files import read_bytes, write_atomically
from aa_core.sweeps.record import RECORD, RunRecord

UPDATE = "aa gate --update-baseline --reason TEXT"


@dataclass(frozen=True)
class Acceptance:
    """Why a baseline was accepted.

    Attributes:
        date: ISO 8601.
        reason: in words.
        code: hash of the training code.
        seeds: how many.
    """

    date: str
    reason: str
    code: str
    seeds: int


@dataclass(frozen=True)
class Baseline:
    """Runs to compare with.

    Attributes:
        recipe: name of the recipe.
        step_over_products: see `aa_core.gate.throughput`.
        history: every acceptance, oldest first; the last is this one.
        records: a record a seed.
        format: version of the file.
    """

    recipe: str
    step_over_products: float
    history: Sequence[Acceptance]
    records: Sequence[RunRecord]
    format: Literal[1] = 1

    def __post_init__(self) -> None:
        if len(self.records) < 2 or not self.history or not self.step_over_products > 0:
            raise InputError("a baseline needs two runs or more, a history and a positive step_over_products")

    @property
    def code(self) -> str:
        """Hash of the training code."""
        return self.records[0].code


def load_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        InputError: there is none, or the file is not one that this version reads.
    """
    if not path.exists():
        raise InputError(f"no baseline at {path}: make one from code that you trust with {UPDATE}")
    try:
        return TypeAdapter(Baseline).validate_json(read_bytes(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        message = " ".join(first["msg"].split())
        raise InputError(f"{path} is not a baseline: {where}: {message}; remove it and run {UPDATE}") from error


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline, one record a line.

    Raises:
        InputError: the file cannot be written.
    """
    head = {
        "format": baseline.format,
        "recipe": baseline.recipe,
        "step_over_products": baseline.step_over_products,
        "history": [dataclasses.asdict(acceptance) for acceptance in baseline.history],
    }
    records = ",\n".join(RECORD.dump_json(record).decode() for record in baseline.records)
    text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    write_atomically(path, f'{text},\n "records": [\n{records}\n]}}\n'.encode())
