"""What a claim is, and what judging it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from aa_core.claims.expectations import Expectation
from aa_core.statistics import Measurement, Threshold, Verdict


class Form(StrEnum):
    """Whether a claim is what the paper states, or a form that was measured to tell broken models apart."""

    LITERAL = "literal"
    CONTROLLED = "controlled"


class Scope(StrEnum):
    """What a claim is about."""

    CHECKPOINT = "checkpoint"
    TRAJECTORY = "trajectory"
    SWEEP = "sweep"


@dataclass(frozen=True)
class Criterion:
    """One quantity and what it must satisfy.

    Attributes:
        quantity: what is measured, in words.
        measure: from a `Subject` (checkpoint scope), a `TrajectorySubject` or a `SweepSubject` to the value.
        threshold: what the value must satisfy.
    """

    quantity: str
    measure: Callable[[Any], Measurement]
    threshold: Threshold


@dataclass(frozen=True)
class Claim:
    """A claim of the paper as an assertion that can fail.

    Attributes:
        id: `family/name`.
        statement: the claim in one sentence.
        paper: the paper's wording and where it stands.
        form: literal or controlled.
        criterion: the headline quantity; its value is what reports show first.
        evidence: the measurements that chose the threshold.
        broken_by: names of the controls that were built to break it.
        conditions: what must hold too, so that the headline is not met for an empty reason.
        scope: what it is about.
    """

    id: str
    statement: str
    paper: str
    form: Form
    criterion: Criterion
    evidence: str
    broken_by: tuple[str, ...]
    conditions: tuple[Criterion, ...] = ()
    scope: Scope = Scope.CHECKPOINT

    @property
    def family(self) -> str:
        """First part of the id."""
        return self.id.split("/")[0]

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """The headline criterion and the conditions."""
        return (self.criterion, *self.conditions)


@dataclass(frozen=True)
class Finding:
    """A criterion as it was measured."""

    criterion: Criterion
    measurement: Measurement
    interval: tuple[float, float] | None
    verdict: Verdict


@dataclass(frozen=True)
class Result:
    """A claim as it was judged.

    Attributes:
        claim: the claim.
        verdict: holds only if every criterion holds; fails if any fails.
        findings: the headline first, then the conditions; empty where skipped.
        reason: why it was skipped, else empty.
        expectation: what a file of expectations says of it.
    """

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...]
    reason: str = ""
    expectation: Expectation | None = None

    @property
    def surprises(self) -> bool:
        """Whether the verdict is not what was expected: it fails with no entry for it, or holds against one."""
        if self.verdict is Verdict.SKIPPED:
            return False
        expected_to_fail = self.expectation is not None and self.expectation.expect == "fails"
        return (self.verdict is Verdict.HOLDS) == expected_to_fail
