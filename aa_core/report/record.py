"""Results as plain data: what `--json` writes."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from aa_core.checkpoints import Checkpoint, Trajectory
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.state import Diagnosis, diagnose, diagnose_each, first_steps
from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Finding, Result
from aa_core.task.split import SplitConfig

FINDING = ("quantity", "measured", "threshold", "n", "count", "interval", "note")
LIBRARIES = ("assign-and-add", "torch", "transformer_lens", "numpy", "scipy")


def subject_record(loaded: Checkpoint | Trajectory, judged: Subject | TrajectorySubject) -> dict[str, Any]:
    """What was judged: path, hash of the weights, format, step, state, split, training config and versions.

    `split_assumed`: a foreign file does not say its split, and the paper's stands in for it.

    For a folder these are the last checkpoint's, and `steps` lists all; `state` has the first step of each state, too.
    """
    last = loaded.final
    steps = None if isinstance(loaded, Checkpoint) else [checkpoint.step for checkpoint in loaded]
    return {
        "path": str(loaded.path),
        "hash": last.sha256,
        "format": last.format,
        "step": last.step,
        "steps": steps,
        "state": state_record(judged, steps),
        "task": dataclasses.asdict(last.task),
        "split_assumed": last.config is None and last.split.config == SplitConfig(),
        "split": dataclasses.asdict(last.split.config),
        "config": None if last.config is None else dataclasses.asdict(last.config),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def state_record(judged: Subject | TrajectorySubject, steps: list[int | None] | None = None) -> dict[str, Any]:
    """The state of a model and what it rests on; of a trajectory the last one, and the first step of each.

    Args:
        judged: the model or models.
        steps: in place of a trajectory's own, where the last one is not known (None).
    """
    if isinstance(judged, Subject):
        return {**_diagnosis(diagnose(judged)), "first_steps": None}
    diagnoses = diagnose_each(judged)
    return {**_diagnosis(diagnoses[-1]), "first_steps": first_steps(steps or judged.steps, diagnoses)}


def _diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    evidence = [
        {
            "quantity": found.quantity,
            "measured": found.value if math.isfinite(found.value) else None,
            "threshold": str(found.threshold),
            "met": found.met,
        }
        for found in diagnosis.evidence
    ]
    return {"name": diagnosis.state.value, "evidence": evidence}


def claim_record(result: Result) -> dict[str, Any]:
    """A result; numbers that are not finite become null. `itself` is the headline's verdict without the conditions."""
    claim = result.claim
    headline = result.findings[0] if result.findings else None
    return {
        "id": claim.id,
        "statement": claim.statement,
        "form": claim.form.value,
        "verdict": result.verdict.value,
        **(_finding(headline) if headline else dict.fromkeys(FINDING)),
        "itself": headline.verdict.value if headline else None,
        "conditions": [{**_finding(finding), "verdict": finding.verdict.value} for finding in result.findings[1:]],
        "reason": result.reason,
        "expected": None if result.expectation is None else result.expectation.model_dump(),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    measurement = finding.measurement
    return {
        "quantity": finding.criterion.quantity,
        "measured": measurement.value if math.isfinite(measurement.value) else None,
        "threshold": str(finding.criterion.threshold),
        "n": measurement.n,
        "count": measurement.count,
        "interval": finding.interval if finding.interval and all(map(math.isfinite, finding.interval)) else None,
        "note": measurement.note,
    }


def json_report(subject: dict[str, Any], claims: Sequence[dict[str, Any]]) -> str:
    """The whole report as JSON text, from `subject_record` and a `claim_record` for each claim."""
    report = {"subject": subject, "claims": claims}
    return json.dumps(report, indent=2, allow_nan=False) + "\n"
