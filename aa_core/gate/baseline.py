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
from aa_core.runs.key import run_key
from aa_core.sweeps.record import RECORD, RunRecord, check_record, config_of

MOST_PRODUCTS = 1000
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
        if len(self.records) < 2 or not self.history or not 0 < self.step_over_products <= MOST_PRODUCTS:
            raise InputError(
                f"a baseline needs two runs or more, a history, and step_over_products above 0, {MOST_PRODUCTS} at most"
            )

    @property
    def code(self) -> str:
        """Hash of the training code."""
        return self.records[0].code


def load_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        InputError: there is none, or the file is not one that this version reads, or no gate could have written it.
    """
    if not path.exists():
        raise InputError(
            f"no baseline at {path}: run the gate in the repository's root or name one with --baseline FILE; "
            f"where there is none yet, make it from code that you trust with {UPDATE}"
        )
    try:
        baseline = TypeAdapter(Baseline).validate_json(read_bytes(path))
        check_baseline(baseline)
        return baseline
    except InputError as error:
        raise InputError(f"{path} is not a baseline: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        message = " ".join(first["msg"].split())
        raise InputError(f"{path} is not a baseline: {where}: {message}; remove it and run {UPDATE}") from error


def check_baseline(baseline: Baseline) -> None:
    """Make sure that all records are runs of one recipe and code, with the same quantities.

    A recipe that changed since is no fault: its runs are named after the recipe as it was.

    Raises:
        InputError: they are not; the message names the record.
    """
    first, seeds = baseline.records[0], set[int]()
    for place, record in enumerate(baseline.records):
        try:
            check_record(record)
            _check_in_set(record, first, baseline.recipe)
            if record.config["seed"] in seeds:
                raise InputError(f"seed {record.config['seed']} is there twice")
        except InputError as error:
            raise InputError(f"record {place} ({record.run}): {error}") from error
        seeds.add(record.config["seed"])
    last = baseline.history[-1]
    if (last.code, last.seeds) != (baseline.code, len(baseline.records)):
        raise InputError(
            f"the history ends with {last.seeds} seeds of the code {last.code[:12]}, "
            f"the records are {len(baseline.records)} of {baseline.code[:12]}"
        )


def _check_in_set(record: RunRecord, first: RunRecord, recipe: str) -> None:
    config = config_of(record.config)
    name = f"{recipe}-seed{config.seed}-{run_key(config, record.code)}"
    if record.run != name:
        raise InputError(f"its config, code and the baseline's recipe are those of {name}")
    if {**record.config, "seed": 0} != {**first.config, "seed": 0}:
        raise InputError("its config differs from the first record's in more than the seed")
    if record.code != first.code:
        raise InputError(f"its training code is {record.code[:12]}, the first record's is {first.code[:12]}")
    if not record.claims:
        raise InputError("no claim was judged")
    for part, now, expected in (
        ("claims", record.claims, first.claims or {}),
        ("accuracies", record.accuracies, first.accuracies),
    ):
        if now.keys() != expected.keys() or not now:
            names = ", ".join(sorted(now.keys() ^ expected.keys())) or "there are none"
            raise InputError(f"{part}: expected the names of the first record; missing or unknown: {names}")


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
