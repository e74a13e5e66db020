"""The results file of a sweep: what was asked for, and what there is of it so far."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from aa_core.errors import InputError
from aa_core.files import read_bytes, write_atomically
from aa_core.runs.environment import versions
from aa_core.sweeps.grid import Axis, field_value
from aa_core.sweeps.point import Failure
from aa_core.sweeps.record import RunRecord, plain_config
from aa_core.training.codehash import training_code_hash
from aa_core.training.config import TrainConfig


@dataclass(frozen=True)
class SweepManifest:
    """What determines a sweep.

    Attributes:
        command: the command line that makes it, without paths.
        base: every field of the config that the axes vary, nested.
        axes: fields that vary and their values; the points are all combinations.
        code: hash of the training code.
        versions: of what computes, where the sweep was started.
    """

    command: str
    base: Mapping[str, Any]
    axes: tuple[Axis, ...]
    code: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class SweepResults:
    """A sweep as far as it got.

    Attributes:
        manifest: what determines it.
        records: of the points that finished, in the order of the grid.
        failures: the points that gave no record.
    """

    manifest: SweepManifest
    records: tuple[RunRecord, ...] = ()
    failures: tuple[Failure, ...] = ()

    def values(self, field: str) -> list[Any]:
        """A field of the config of each record."""
        return [field_value(record.config, field) for record in self.records]


RESULTS = TypeAdapter(SweepResults)


def sweep_manifest(command: str, base: TrainConfig, axes: Sequence[Axis]) -> SweepManifest:
    """The manifest of a sweep with this training code."""
    return SweepManifest(command, plain_config(base), tuple(axes), training_code_hash(), versions())


def with_points(
    results: SweepResults, order: Sequence[Mapping[str, Any]], points: Sequence[RunRecord | Failure]
) -> SweepResults:
    """Results with points added, in the order of the plain configs `order`."""
    places = {id(point): order.index(point.config) for point in (*results.records, *points)}
    records = [*results.records, *(point for point in points if isinstance(point, RunRecord))]
    failures = [*results.failures, *(point for point in points if isinstance(point, Failure))]
    return replace(
        results,
        records=tuple(sorted(records, key=lambda record: places[id(record)])),
        failures=tuple(failures),
    )


def save_results(path: Path, results: SweepResults) -> None:
    """Write a results file.

    Raises:
        InputError: it cannot be written.
    """
    write_atomically(path, RESULTS.dump_json(results, indent=1) + b"\n")


def load_results(path: Path) -> SweepResults:
    """Read a results file.

    Raises:
        InputError: it cannot be read, or is not one.
    """
    try:
        return RESULTS.validate_json(read_bytes(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(f"{path} is not a results file of aa sweep ({where}: {first['msg']})") from error


def resumed(path: Path, manifest: SweepManifest, order: Sequence[Mapping[str, Any]], *, judge: bool) -> SweepResults:
    """What an earlier call of the same sweep, or of a part of it, left in a file; nothing where there is no file.

    Failed points are tried again, and points that should be judged but were not are done again.

    Raises:
        InputError: the file is of another sweep or of other training code, and would be lost.
    """
    if not path.exists():
        return SweepResults(manifest)
    earlier = load_results(path)
    if earlier.manifest.code != manifest.code:
        raise InputError(f"{path} was made by other training code: remove it, or choose another --output")
    if any(record.config not in order for record in earlier.records):
        raise InputError(f"{path} holds points that are not in this sweep: remove it, or choose another --output")
    return SweepResults(manifest, tuple(record for record in earlier.records if record.claims or not judge))


def csv_table(results: SweepResults) -> str:
    """One line a record: the axes, the run, its state, phases (`step/...`), accuracies and verdicts, as CSV."""
    rows = []
    for record in results.records:
        row: dict[str, Any] = {axis.field: field_value(record.config, axis.field) for axis in results.manifest.axes}
        row |= {"run": record.run, "seconds": record.seconds, "state": record.state.value}
        row |= {f"step/{name}": step for name, step in record.phases.items()}
        for name, (right, n) in record.accuracies.items():
            row |= {f"right/{name}": right, f"n/{name}": n}
        row |= {f"claim/{name}": claim.verdict.value for name, claim in (record.claims or {}).items()}
        rows.append(row)
    columns = dict.fromkeys(column for row in rows for column in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
