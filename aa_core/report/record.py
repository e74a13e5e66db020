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
from aa_core.claims.claim import Finding, Result
from aa_core.task.split import SplitConfig

FINDING = ("quantity", "measured", "threshold", "n", "count", "interval", "note")
LIBRARIES = ("assign-and-add", "torch", "transformer_lens", "numpy", "scipy")


def subject_record(loaded: Checkpoint | Trajectory) -> dict[str, Any]:
    """What was judged: path, hash of the weights, format, step, split, training config and versions.

    `split_assumed`: a foreign file does not say its split, and the paper's stands in for it.

    For a folder these are the last checkpoint's, and `steps` lists all.
    """
    last = loaded if isinstance(loaded, Checkpoint) else loaded.final
    return {
        "path": str(loaded.path),
        "hash": last.sha256,
        "format": last.format,
        "step": last.step,
        "steps": None if isinstance(loaded, Checkpoint) else [checkpoint.step for checkpoint in loaded],
        "task": dataclasses.asdict(last.task),
        "split_assumed": last.config is None and last.split.config == SplitConfig(),
        "split": dataclasses.asdict(last.split.config),
        "config": None if last.config is None else dataclasses.asdict(last.config),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


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
