"""Judging claims on a model or on a trajectory of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Claim, Finding, Result, Scope
from aa_core.statistics import NotApplicable, Verdict, combined, judge


def verify(
    subject: Subject | TrajectorySubject,
    claims: Sequence[Claim],
    alpha: float,
    progress: Callable[[Iterable[Claim]], Iterable[Claim]] = lambda claims: claims,
) -> list[Result]:
    """Judge claims, in order.

    Claims about a checkpoint are judged on a trajectory's last model; claims about a trajectory are skipped for a
    single model, and claims that do not apply to the model or the folder for the reason that their measure gives.

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
        try:
            measurement = criterion.measure(target)
        except NotApplicable as reason:
            return Result(claim, Verdict.SKIPPED, (), str(reason))
        verdict = judge(measurement, criterion.threshold, alpha)
        findings.append(Finding(criterion, measurement, measurement.interval(alpha), verdict))
    return Result(claim, combined([finding.verdict for finding in findings]), tuple(findings))
