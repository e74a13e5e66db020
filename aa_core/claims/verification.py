"""Judging claims on a model or on a trajectory of models."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Claim, Finding, Result, Scope
from aa_core.claims.expectations import Expectation
from aa_core.errors import InputError
from aa_core.statistics import NotApplicable, Verdict, combined, judge


def verify(
    subject: Subject | TrajectorySubject,
    claims: Sequence[Claim],
    alpha: float,
    expected: Mapping[str, Expectation | None] | None = None,
    progress: Callable[[Iterable[Claim]], Iterable[Claim]] = lambda claims: claims,
) -> list[Result]:
    """Judge claims, in order.

    Claims about a checkpoint are judged on a trajectory's last model; claims about a trajectory are skipped for a
    single model, and claims that do not apply to the model or the folder for the reason that their measure gives.

    Args:
        subject: what is judged.
        claims: which claims.
        alpha: error rate of each interval; see `aa_core.claims.registry.interval_alpha`.
        expected: by claim id, what is expected of it; one to be skipped is not measured.
        progress: wraps the iteration, for a progress bar.
    """
    expected = expected or {}
    return [_judge_expected(subject, claim, alpha, expected.get(claim.id)) for claim in progress(claims)]


def _judge_expected(
    subject: Subject | TrajectorySubject, claim: Claim, alpha: float, expectation: Expectation | None
) -> Result:
    if expectation is not None and expectation.expect == "skip":
        return Result(claim, Verdict.SKIPPED, (), expectation.reason, expectation)
    return dataclasses.replace(_judge_claim(subject, claim, alpha), expectation=expectation)


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
        except (NotApplicable, InputError) as reason:  # or the task is too small to draw the data from
            return Result(claim, Verdict.SKIPPED, (), str(reason))
        verdict = judge(measurement, criterion.threshold, alpha)
        findings.append(Finding(criterion, measurement, measurement.interval(alpha), verdict))
    return Result(claim, combined([finding.verdict for finding in findings]), tuple(findings))
