"""Judging claims on a model or on a trajectory of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Claim, Finding, Result, Scope
from aa_core.statistics import Verdict, combined, judge


@dataclass(frozen=True)
class TrajectorySubject:
    """Models along one training run.

    Attributes:
        steps: number of updates of each, increasing.
        subjects: the models.
    """

    steps: tuple[int, ...]
    subjects: tuple[Subject, ...]

    def __post_init__(self) -> None:
        if list(self.steps) != sorted(set(self.steps)) or len(self.steps) != len(self.subjects):
            raise ValueError("steps must increase, one a subject")

    @cached_property
    def final(self) -> Subject:
        """The last model."""
        return self.subjects[-1]


def verify(
    subject: Subject | TrajectorySubject,
    claims: Sequence[Claim],
    alpha: float,
    progress: Callable[[Iterable[Claim]], Iterable[Claim]] = lambda claims: claims,
) -> list[Result]:
    """Judge claims, in order.

    Claims about a checkpoint are judged on a trajectory's last model; claims about a trajectory are skipped for a
    single model.

    Args:
        subject: what is judged.
        claims: which claims.
        alpha: error rate of each interval; see `aa_core.claims.registry.interval_alpha`.
        progress: wraps the iteration, for a progress bar.
    """
    return [_judge_claim(subject, claim, alpha) for claim in progress(claims)]


def _judge_claim(subject: Subject | TrajectorySubject, claim: Claim, alpha: float) -> Result:
    target: Subject | TrajectorySubject = subject
    if claim.scope is Scope.TRAJECTORY:
        if isinstance(subject, Subject):
            return Result(claim, Verdict.SKIPPED, (), "needs a folder of checkpoints along training")
    elif isinstance(subject, TrajectorySubject):
        target = subject.final
    findings = []
    for criterion in claim.criteria:
        measurement = criterion.measure(target)
        verdict = judge(measurement, criterion.threshold, alpha)
        findings.append(Finding(criterion, measurement, measurement.interval(alpha), verdict))
    return Result(claim, combined([finding.verdict for finding in findings]), tuple(findings))
