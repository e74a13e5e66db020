"""What a sweep measures against the field that it varies: accuracy on what training never showed."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from aa_core.errors import InputError
from aa_core.sweeps.grid import FRACTION, FREQUENCY, field_value
from aa_core.sweeps.record import EXACT, RunRecord
from aa_core.sweeps.results import SweepResults, load_results, n_points

SEEN = (f"{EXACT}/seen",)
GENERALISES: Mapping[str, tuple[str, ...]] = types.MappingProxyType(
    {
        FRACTION: (f"{EXACT}/held-out",),
        FREQUENCY: ("2-var/held-out", "2-var/one-restricted", "2-var/both-restricted"),
    }
)
"""By swept field, the accuracies whose union it is measured by."""

TRAINED: Mapping[str, tuple[str, ...]] = types.MappingProxyType({FRACTION: SEEN, FREQUENCY: ("2-var/seen",)})
"""By swept field, the same on what training shows."""


@dataclass(frozen=True)
class Curve:
    """Accuracies against a swept field, a point a run.

    Attributes:
        field: the swept field.
        records: runs that differ in it and in seeds alone.
    """

    field: str
    records: tuple[RunRecord, ...]

    @cached_property
    def x(self) -> Float[np.ndarray, " points"]:
        """Value of the field at each point."""
        return np.array([float(field_value(record.config, self.field)) for record in self.records])

    @cached_property
    def y(self) -> Float[np.ndarray, " points"]:
        """Accuracy of each point on what training never showed."""
        return np.array([record.accuracy(*GENERALISES[self.field]) for record in self.records])

    @cached_property
    def trained(self) -> Float[np.ndarray, " points"]:
        """Accuracy of each point on what training shows."""
        return np.array([record.accuracy(*TRAINED[self.field]) for record in self.records])

    @cached_property
    def delay(self) -> Float[np.ndarray, " points"]:
        """Steps to solve the held-out sums of constants over those to solve the trained ones; inf where the former
        never are, nan where the latter never are.
        """
        return np.array([_delay(record) for record in self.records])

    @cached_property
    def two_variable_steps(self) -> Float[np.ndarray, " points"]:
        """Step at which each point solves full prefixes with two variables; inf where it never does."""
        steps = [record.phases["full-prefix/2-var"] for record in self.records]
        return np.array([np.inf if step is None else step for step in steps])

    @cached_property
    def values(self) -> Float[np.ndarray, " values"]:
        """The values of the field, each once, increasing."""
        return np.unique(self.x)

    @cached_property
    def n_repeats(self) -> Int[np.ndarray, " values"]:
        """Runs at each of `values`."""
        return np.unique(self.x, return_counts=True)[1]


def load_curve(path: Path) -> Curve:
    """The curve of a results file.

    Raises:
        InputError: it cannot be read, or see `curve`.
    """
    results = load_results(path)
    try:
        return curve(results)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def curve(results: SweepResults) -> Curve:
    """The curve of a sweep of f or of r, with nothing else but seeds.

    Raises:
        InputError: it is another sweep, has no point yet, or no run at one of the values.
    """
    varied = [axis.field for axis in results.manifest.axes if len(axis.values) > 1]
    swept = [field for field in varied if field.split(".")[-1] != "seed"]
    if len(swept) != 1 or swept[0] not in GENERALISES:
        raise InputError(f"a sweep of {', '.join(swept) or 'seeds'}, expected one of f or of r, with seeds")
    missing = n_points(results.manifest) - len(results.records) - len(results.failures)
    if missing or not results.records:
        raise InputError(f"{missing} points of the sweep are missing: finish it with {results.manifest.command}")
    found = Curve(swept[0], results.records)
    [asked] = [axis.values for axis in results.manifest.axes if axis.field == swept[0]]
    lost = [value for value in asked if value not in found.values]
    if lost:
        raise InputError(f"every point of {swept[0]}={lost[0]:g} failed: {results.failures[0].reason}")
    nothing = [value for value, y in zip(found.x, found.y, strict=True) if math.isnan(y) or value <= 0]
    if nothing:
        raise InputError(f"{swept[0]}={nothing[0]:g} leaves nothing to judge there: make the sweep without it")
    return found


def _delay(record: RunRecord) -> float:
    trained, held_out = record.phases["pool/0-var/seen"], record.phases["pool/0-var/held-out"]
    if trained is None:
        return float("nan")
    return float("inf") if held_out is None else held_out / max(trained, 1)
