"""The results file of a sweep: what was asked for, and what there is of it so far."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from aa_core.errors import InputError
from aa_core.files import read_bytes, write_atomically
from aa_core.runs.environment import versions
from aa_core.sweeps.grid import Axis, field_value, flat_fields, grid
from aa_core.sweeps.kept import judging_code_hash
from aa_core.sweeps.point import Failure
from aa_core.sweeps.record import RunRecord, check_record, config_of, plain_config
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
        judging: hash of the code that judged the claims of the records, None where they are not judged.
    """

    command: str
    base: Mapping[str, Any]
    axes: tuple[Axis, ...]
    code: str
    versions: Mapping[str, str]
    judging: str | None = None


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


RESULTS = TypeAdapter(SweepResults)


def sweep_manifest(command: str, base: TrainConfig, axes: Sequence[Axis], *, judge: bool = False) -> SweepManifest:
    """The manifest of a sweep with this training code, and with this judging code if claims are judged."""
    judging = judging_code_hash() if judge else None
    return SweepManifest(command, plain_config(base), tuple(axes), training_code_hash(), versions(), judging)


def with_points(
    results: SweepResults, order: Sequence[Mapping[str, Any]], points: Sequence[RunRecord | Failure]
) -> SweepResults:
    """Results with points added, or put in the place of earlier ones, in the order of the plain configs `order`."""
    new = [point for point in points if isinstance(point, RunRecord)]
    failures = [*results.failures, *(point for point in points if isinstance(point, Failure))]
    configs = [record.config for record in new]
    records = [*(record for record in results.records if record.config not in configs), *new]
    records.sort(key=lambda record: order.index(record.config))
    return replace(results, records=tuple(records), failures=tuple(failures))


def save_results(path: Path, results: SweepResults) -> None:
    """Write a results file.

    Raises:
        InputError: it cannot be written.
    """
    write_atomically(path, RESULTS.dump_json(results, indent=1) + b"\n")


def load_results(path: Path) -> SweepResults:
    """Read a results file.

    Raises:
        InputError: it cannot be read, is not one, or holds what no sweep would have written.
    """
    try:
        results = RESULTS.validate_json(read_bytes(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(f"{path} is not a results file of aa sweep ({where}: {first['msg']})") from error
    try:
        _check(results)
    except InputError as error:
        raise InputError(f"{path} is not as aa sweep writes it: {error}") from error
    return results


def _check(results: SweepResults) -> None:
    """Refuse records that are impossible, of other code, of no point of the sweep, or of the same one twice."""
    left: list[Mapping[str, Any]] = [*_points(results.manifest)]
    for record in results.records:
        check_record(record)
        if record.code != results.manifest.code:
            raise InputError(f"{record.run} was trained by other code than the sweep")
        if record.config not in left:
            raise InputError(f"{record.run} is of no point of the sweep, or of one that is there already")
        left.remove(record.config)


def _points(manifest: SweepManifest) -> list[dict[str, Any]]:
    try:
        return [plain_config(config) for config in grid(config_of(manifest.base), manifest.axes)]
    except (InputError, TypeError, AttributeError) as error:
        raise InputError(f"manifest: base and axes give no configs: {error}") from error


def n_points(manifest: SweepManifest) -> int:
    """Points of a whole sweep."""
    return math.prod(len(axis.values) for axis in manifest.axes)


def resumed(path: Path, manifest: SweepManifest, order: Sequence[Mapping[str, Any]], *, judge: bool) -> SweepResults:
    """What an earlier call of the same sweep, or of a part of it, left in a file; nothing where there is no file.

    Failed points are tried again; verdicts by other judging code are left out.

    Raises:
        InputError: the file is of another sweep or of other training code, and would be lost.
    """
    if not path.exists():
        return SweepResults(manifest)
    earlier = load_results(path)
    if earlier.manifest.code != manifest.code:
        raise InputError(f"{path} was made by other training code: remove it, or choose another --output")
    for record in earlier.records:
        if record.config not in order:
            raise InputError(
                f"{path} holds {_difference(record.config, order[0])}, which is not in this sweep: "
                "choose another --output, or remove it"
            )
    records = earlier.records
    if judge and earlier.manifest.judging != manifest.judging:
        records = tuple(replace(record, claims=None) for record in records)
    return SweepResults(replace(manifest, versions=earlier.manifest.versions), records)


def _difference(config: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Fields of a config that differ from another's, as `split.train_fraction=0.3, seed=1`."""
    fields, others = flat_fields(config), flat_fields(other)
    return ", ".join(f"{name}={value}" for name, value in fields.items() if others.get(name, value) != value)


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
