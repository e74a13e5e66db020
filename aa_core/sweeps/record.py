"""One finished run as a few numbers: what a sweep, a study of seeds or a worker elsewhere hands back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from aa_core.checkpoints import load_checkpoint, load_subject
from aa_core.circuits.accuracy import held_out_zero_variable, seen_zero_variable
from aa_core.circuits.dynamics import LEARNED
from aa_core.circuits.state import State, diagnose
from aa_core.circuits.subject import Subject
from aa_core.claims.registry import CLAIMS, interval_alpha
from aa_core.claims.subjects import as_subject
from aa_core.claims.verification import verify
from aa_core.errors import InputError
from aa_core.runs import Run
from aa_core.runs.key import config_json
from aa_core.statistics import Verdict
from aa_core.task.sampling import KINDS, POOLS
from aa_core.training.config import TrainConfig
from aa_core.training.loop import Row

PHASES = (
    "pool/0-var/seen",
    "pool/0-var/held-out",
    *(f"full-prefix/{kind}" for kind in KINDS),
    "pool/1-var/restricted",
    "pool/2-var/one-restricted",
    "pool/2-var/both-restricted",
)
EXACT = "exact/0-var"  # every pair of constants once, where a pool samples them


@dataclass(frozen=True)
class JudgedClaim:
    """Verdict on a claim and the value of its headline criterion, None where it was skipped or is undefined."""

    verdict: Verdict
    value: float | None


@dataclass(frozen=True)
class RunRecord:
    """What is kept of a finished run; all of it is plain data.

    Attributes:
        config: every field of the `TrainConfig`, nested.
        run: name of the run's folder.
        code: hash of the code that trained it.
        seconds: wall-clock time of training.
        threads: PyTorch's threads while it was trained.
        phases: by the metric's name (`PHASES`), first logged step with an accuracy of at least `LEARNED`, or None.
        accuracies: right answers and sequences after the last step, on each evaluation pool that the split does not
            leave empty, and on every pair of constants as `exact/0-var/seen` and `exact/0-var/held-out`.
        state: what the run has learned by its last step.
        claims: by id, the claims judged on the run's trajectory; None where they were not judged.
    """

    config: Mapping[str, Any]
    run: str
    code: str
    seconds: float
    threads: int
    phases: Mapping[str, int | None]
    accuracies: Mapping[str, tuple[int, int]]
    state: State
    claims: Mapping[str, JudgedClaim] | None = None

    def accuracy(self, *names: str) -> float:
        """Share of right answers on the union of some of `accuracies`; nan where the split leaves them empty."""
        counts = [self.accuracies[name] for name in names if name in self.accuracies]
        return sum(right for right, _ in counts) / sum(n for _, n in counts) if counts else math.nan


RECORD = TypeAdapter(RunRecord)
"""Reads and writes a record as JSON."""


def check_record(record: RunRecord) -> None:
    """Refuse a record that no run of this code could have given.

    Raises:
        InputError: its config is not one of a training run, or a count, a step or a value is impossible.
    """
    try:
        config = config_of(record.config)
    except InputError as error:
        raise InputError(f"{record.run}: config: {error}") from error
    for name, (right, n) in record.accuracies.items():
        if not 0 <= right <= n or n == 0:
            raise InputError(f"{record.run}: accuracies.{name}: {right} of {n} cannot be right")
    if record.phases.keys() != set(PHASES):
        names = ", ".join(sorted(record.phases.keys() ^ set(PHASES)))
        raise InputError(f"{record.run}: phases: expected {len(PHASES)} names; missing or unknown: {names}")
    for name, step in record.phases.items():
        if step is not None and not 0 <= step <= config.steps:
            raise InputError(f"{record.run}: phases.{name}: {step}, expected a step from 0 to {config.steps}")
    for name, claim in (record.claims or {}).items():
        if claim.value is not None and not math.isfinite(claim.value):
            raise InputError(f"{record.run}: claims.{name}: {claim.value}, expected a finite number or null")


def run_record(run: Run, *, judge: bool = True) -> RunRecord:
    """The record of a finished run.

    Args:
        run: the run.
        judge: whether to judge every claim, which takes 15 to 40 seconds for a run of the paper's task.

    Raises:
        InputError: a checkpoint cannot be read.
    """
    checkpoint = load_checkpoint(run.final_path)
    subject = Subject(checkpoint.parameters, checkpoint.split)
    return RunRecord(
        config=plain_config(run.config),
        run=run.folder.name,
        code=run.manifest.code,
        seconds=run.manifest.seconds,
        threads=run.manifest.threads,
        phases=phases(run.metrics()),
        accuracies=accuracies(subject),
        state=diagnose(subject).state,
        claims=judged_claims(run) if judge else None,
    )


def plain_config(config: TrainConfig) -> dict[str, Any]:
    """A config as the plain data that records and files hold."""
    return json.loads(config_json(config))


def config_of(plain: Mapping[str, Any]) -> TrainConfig:
    """The config of which `plain_config` gives this plain data.

    Raises:
        InputError: there is none.
    """
    try:
        config = TypeAdapter(TrainConfig).validate_python(plain)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if plain_config(config) != plain:
        raise InputError("a field is missing, or is none of a training run's")
    return config


def phases(rows: Sequence[Row]) -> dict[str, int | None]:
    """First step of the rows at which each of `PHASES` is learned, None where it never is."""
    return {
        name: next((int(row["step"]) for row in rows if row.get(name, math.nan) >= LEARNED), None) for name in PHASES
    }


def accuracies(subject: Subject) -> dict[str, tuple[int, int]]:
    """Right answers and sequences, on the evaluation pools and on every pair of constants."""
    pools = {name: run.correct for name in POOLS if (run := subject.pool(name)) is not None}
    counts = {name: (int(correct.sum()), len(correct)) for name, correct in pools.items()}
    for name, measure in (("seen", seen_zero_variable), ("held-out", held_out_zero_variable)):
        exact = measure(subject)
        if exact.n is not None and exact.count is not None:
            counts[f"{EXACT}/{name}"] = (exact.count, exact.n)
    return counts


def judged_claims(run: Run) -> dict[str, JudgedClaim]:
    """Every claim, judged on the checkpoints of a run."""
    with np.errstate(all="ignore"):  # what overflows is nan, and nan meets no threshold
        results = verify(as_subject(load_subject(run.folder)), CLAIMS, interval_alpha())
    values = [result.findings[0].measurement.value if result.findings else math.nan for result in results]
    return {
        result.claim.id: JudgedClaim(result.verdict, value if math.isfinite(value) else None)
        for result, value in zip(results, values, strict=True)
    }
