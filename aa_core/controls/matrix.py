"""Every claim against every control and every symmetry, and what is wrong with the outcome."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from aa_core.checkpoints import weights_sha256
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Claim, Scope
from aa_core.claims.registry import interval_alpha
from aa_core.claims.verification import verify
from aa_core.controls.control import Control, Symmetry, TrainedControl, TrajectoryControl
from aa_core.controls.registry import BREAKING_CONTROLS
from aa_core.files import write_atomically
from aa_core.statistics import Verdict

ITSELF = "none"  # the control's name in the rows of the model itself
CRASHED = "crashed"
KEPT = ("seed", "value")  # columns that are written even where they are 0 or undefined
UNTRAINED = ("random", "random-trajectory")

Change = Control | TrainedControl | TrajectoryControl | Symmetry


class Group(StrEnum):
    """What the rows of a change are for."""

    ITSELF = "model itself"
    CONTROL = "control"
    HARMLESS = "harmless control"
    SYMMETRY = "symmetry"


@dataclass(frozen=True)
class Row:
    """A claim as judged on a changed model.

    Attributes:
        claim: the claim's id.
        control: name of the control or symmetry, `none` for the model itself.
        group: what kind of change it is.
        seed: seed of the change.
        verdict: a `Verdict`, or `crashed` where a measurement raised or warned.
        value: of the headline criterion; None where it is nan or was not measured.
        threshold: of the headline criterion.
        failed: quantities of the criteria that fail; the headline may not be among them.
        error: what was raised.
    """

    claim: str
    control: str
    group: Group
    seed: int
    verdict: str
    value: float | None
    threshold: str
    failed: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class ControlMatrix:
    """All rows, with the claims that they judge.

    Attributes:
        weights: sha256 of the model's parameters (of a trajectory's last model).
        claims: the claims that were judged.
        changes: the controls and symmetries.
        rows: the model itself first, then one block for each change and seed.
    """

    weights: str
    claims: tuple[Claim, ...]
    changes: tuple[Change, ...]
    rows: tuple[Row, ...]

    def must_fail(self, claim: Claim, control: str) -> bool:
        """Whether a control was built to break a claim."""
        return control in claim.broken_by or self._among(claim, control, "breaks")

    def must_hold(self, claim: Claim, control: str) -> bool:
        """Whether a claim has nothing to do with what a control breaks."""
        return self._among(claim, control, "spares")

    def _among(self, claim: Claim, control: str, attribute: str) -> bool:
        chosen = [name for change in self.changes if change.name == control for name in getattr(change, attribute, ())]
        return claim.family in chosen or claim.id in chosen

    def made_for(self, control: str) -> list[str]:
        """The claims judged under a control that it was built to break."""
        judged = {row.claim for row in self.rows if row.control == control}
        return [claim.id for claim in self.claims if claim.id in judged and self.must_fail(claim, control)]

    def breaks(self) -> dict[str, list[str]]:
        """For each control, the claims that it fails with every seed."""
        names = dict.fromkeys(row.control for row in self.rows if row.group is Group.CONTROL)
        return {
            name: [claim.id for claim in self.claims if _verdicts(self, claim.id, name) == {Verdict.FAILS}]
            for name in names
        }


def control_matrix(
    subject: Subject | TrajectorySubject,
    claims: Sequence[Claim],
    controls: Iterable[Control | TrainedControl | TrajectoryControl],
    symmetries: Iterable[Symmetry],
    seeds: Sequence[int] = (0,),
    progress: Callable[[Sequence[Change]], Iterable[Change]] = lambda changes: changes,
) -> ControlMatrix:
    """Judge the claims on the model itself and after every change.

    On a single model claims about a trajectory and controls of trajectories are left out. On a trajectory claims
    about a checkpoint are judged on its last model; claims about the trajectory under controls of trajectories, under
    symmetries of all its models, and under the controls of a model that they name, applied to all its models.
    Trained controls are left out for a task of other sizes than theirs.
    """
    judged = [claim for claim in claims if claim.scope is Scope.CHECKPOINT or isinstance(subject, TrajectorySubject)]
    final = subject.final
    changes = [
        change
        for change in (*controls, *symmetries)
        if not isinstance(change, TrainedControl) or change.config.task == final.task
    ]
    for change in changes:
        if isinstance(change, TrainedControl):
            change.load()  # refuses a missing file before the work
    rows = _judged(subject, judged, ITSELF, Group.ITSELF, 0)
    for change in progress(changes):
        for seed in seeds:
            rows += _changed_rows(subject, judged, change, seed)
    return ControlMatrix(weights_sha256(final.parameters), tuple(judged), tuple(changes), tuple(rows))


def _changed_rows(subject: Subject | TrajectorySubject, claims: list[Claim], change: Change, seed: int) -> list[Row]:
    on_model = [claim for claim in claims if claim.scope is Scope.CHECKPOINT]
    on_run = [claim for claim in claims if claim.scope is Scope.TRAJECTORY]
    if isinstance(change, TrajectoryControl):
        if not isinstance(subject, TrajectorySubject):
            return []
        return _judged(change.build(subject, seed), on_run, change.name, Group.CONTROL, seed)
    if isinstance(change, TrainedControl):
        return _judged(change.apply(subject.final, seed), on_model, change.name, Group.CONTROL, seed)
    group = Group.SYMMETRY
    if isinstance(change, Control):
        group = Group.HARMLESS if change.harmless else Group.CONTROL
        on_run = [claim for claim in on_run if change.name in claim.broken_by]
    if not isinstance(subject, TrajectorySubject):
        return _judged(change.apply(subject, seed), on_model, change.name, group, seed)
    last = change.apply(subject.final, seed)
    rows = _judged(last, on_model, change.name, group, seed)
    if on_run:
        models = (*(change.apply(model, seed) for model in subject.subjects[:-1]), last)
        rows += _judged(TrajectorySubject(subject.steps, models), on_run, change.name, group, seed)
    return rows


def _judged(
    subject: Subject | TrajectorySubject, claims: Sequence[Claim], control: str, group: Group, seed: int
) -> list[Row]:
    alpha = interval_alpha()
    return [_row(subject, claim, alpha, control, group, seed) for claim in claims]


def _row(
    subject: Subject | TrajectorySubject, claim: Claim, alpha: float, control: str, group: Group, seed: int
) -> Row:
    threshold = str(claim.criterion.threshold)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = verify(subject, [claim], alpha)[0]
    except Exception as error:  # whatever it is, the measurement must bear every model
        text = f"{type(error).__name__}: {error}"
        return Row(claim.id, control, group, seed, CRASHED, None, threshold, error=text)
    failed = tuple(found.criterion.quantity for found in result.findings if found.verdict is Verdict.FAILS)
    value = result.findings[0].measurement.value if result.findings else math.nan
    return Row(claim.id, control, group, seed, result.verdict, None if math.isnan(value) else value, threshold, failed)


def _verdicts(matrix: ControlMatrix, claim: str, control: str) -> set[str]:
    return {row.verdict for row in matrix.rows if row.claim == claim and row.control == control}


def matrix_faults(matrix: ControlMatrix) -> list[str]:
    """What speaks against the claims, one line each; empty if all is as it should be.

    A claim must hold on the model itself, fail under each control that its `broken_by` names or that says so, name one
    besides untrained weights, hold under harmless controls and those that spare it, and get the same verdict under
    every symmetry. No measurement may raise or warn on any model.
    """
    faults = [
        f"{row.claim} crashes on {row.control}, seed {row.seed}: {row.error}"
        for row in matrix.rows
        if row.verdict == CRASHED
    ]
    for claim in matrix.claims:
        faults += _claim_faults(matrix, claim)
    return faults


def _claim_faults(matrix: ControlMatrix, claim: Claim) -> list[str]:
    faults = []
    itself = next(row.verdict for row in matrix.rows if row.claim == claim.id and row.control == ITSELF)
    if itself != Verdict.HOLDS:
        faults.append(f"{claim.id} does not hold on the model itself ({itself}), so controls prove nothing")
    if not set(claim.broken_by) - set(UNTRAINED):
        faults.append(f"{claim.id} names no control besides untrained weights")
    for name in claim.broken_by:
        if name not in BREAKING_CONTROLS:
            faults.append(f"{claim.id} names {name}, which is no control")
        elif not _verdicts(matrix, claim.id, name):
            faults.append(f"{claim.id} was not judged under {name}, which it names")
    for row in matrix.rows:
        if row.claim != claim.id or row.verdict == CRASHED:
            continue
        where = f"{claim.id} {row.verdict} under {row.control}, seed {row.seed} (value {row.value})"
        if row.group is Group.CONTROL and matrix.must_fail(claim, row.control) and row.verdict != Verdict.FAILS:
            faults.append(f"{where}, which was built to break it")
        if (
            row.group is Group.CONTROL
            and matrix.must_hold(claim, row.control)
            and itself == Verdict.HOLDS != row.verdict
        ):
            faults.append(f"{where}, which has nothing to do with it")
        if row.group is Group.HARMLESS and itself == Verdict.HOLDS != row.verdict:
            faults.append(f"{where}, which breaks nothing")
        if row.group is Group.SYMMETRY and row.verdict != itself:
            faults.append(f"{where}, a symmetry, and {itself} without it")
    return faults


def write_matrix(matrix: ControlMatrix, path: Path) -> None:
    """Write a matrix as JSON, one row a line, the same matrix always as the same bytes.

    Values keep four significant digits, so that rounding of another processor does not show.

    Raises:
        InputError: the file cannot be written.
    """
    rows = [
        {
            name: _rounded(value) if name == "value" else value
            for name, value in asdict(row).items()
            if value or name in KEPT
        }
        for row in matrix.rows
    ]
    parts = {
        "weights_sha256": json.dumps(matrix.weights),
        "faults": _lines(matrix_faults(matrix)),
        "breaks": _lines({name: claims} for name, claims in matrix.breaks().items()),
        "rows": _lines(rows),
    }
    text = "{\n" + ",\n".join(f'"{name}": {part}' for name, part in parts.items()) + "\n}\n"
    write_atomically(path, text.encode())


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _lines(items: Iterable[object]) -> str:
    lines = [json.dumps(item, ensure_ascii=False) for item in items]
    return "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"
