"""Checking a certificate again from the weights.

The full check computes every sequence anew and establishes all that the certificate claims, with the code at hand.
The sampled check computes some random chunks, every listed failure and the sequence of the least margin. It
establishes that those are as the certificate says and that its numbers fit each other. If `k` of the `n` chunks were
not as the certificate says, `N` random ones would miss all of them with probability C(n - k, N) / C(n, N); the counts
by division are compared with the totals alone.

Neither can establish the fields of `PROVENANCE`: they are protected by their seals alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from aa_core.certificates.catalogue import DOMAINS, domain_of
from aa_core.certificates.certificate import Certificate, CertificateFile, Least
from aa_core.certificates.certification import (
    CHUNK_SIZE,
    Plan,
    Progress,
    certificate_code_hash,
    claim_text,
    listed,
    problem_text,
    totals_anew,
)
from aa_core.certificates.chunk import DIGITS, Failure, judge, model_of, rounded
from aa_core.certificates.consistency import Refusal, broken_seals, differences, inconsistencies, short
from aa_core.certificates.domain import Domain
from aa_core.certificates.enumeration import judged_chunks, range_of, work_of
from aa_core.certificates.totals import ChunkLine
from aa_core.checkpoints import Checkpoint
from aa_core.errors import InputError

PROVENANCE = ("versions", "device", "jobs", "seconds", "process_mib")
MARGIN = 2 * 10.0**-DIGITS  # a kept margin may be rounded the other way on another machine


@dataclass(frozen=True)
class Check:
    """How a certificate is checked.

    Attributes:
        sample: chunks to compute anew; None, or as many as there are, for the full check.
        jobs: processes.
        rng: draws the chunks; a fixed one would tell a forger which are looked at.
    """

    sample: int | None
    jobs: int
    rng: np.random.Generator

    def is_full(self, certificate: Certificate) -> bool:
        """Whether everything is computed anew."""
        return self.sample is None or self.sample >= len(certificate.chunks)


def check_certificate(file: CertificateFile, checkpoint: Checkpoint, how: Check, progress: Progress) -> Refusal | None:
    """Check a certificate from the weights.

    Args:
        file: what is claimed.
        checkpoint: the model.
        how: see `Check`.
        progress: told of every chunk.

    Returns:
        None if nothing is wrong, else the first field that is.

    Raises:
        InputError: a logit is not finite, or a worker was ended.
    """
    return next(_refusals(file, checkpoint, how, progress), None)


def _refusals(file: CertificateFile, checkpoint: Checkpoint, how: Check, progress: Progress) -> Iterator[Refusal]:
    """What is wrong, cheap checks first; nothing after the first one is of meaning."""
    certificate = file.certificate
    yield from broken_seals(file)
    yield from differences(
        ("weights_sha256", certificate.weights_sha256, checkpoint.sha256),
        ("task", certificate.task, checkpoint.task),
        ("split", certificate.split, checkpoint.split.config),
    )
    try:
        domain = domain_of(certificate.domain, certificate.parameters, checkpoint.split)
    except InputError as error:
        yield Refusal("parameters" if certificate.domain in DOMAINS else "domain", str(error))
        return
    yield from differences(
        ("parameters", certificate.parameters, domain.parameters),
        ("code_sha256", certificate.code_sha256, certificate_code_hash(domain)),
        ("size", certificate.size, domain.size),
    )
    if not 1 <= certificate.chunk_size <= CHUNK_SIZE:
        yield Refusal("chunk_size", f"expected 1 to {CHUNK_SIZE}, not {certificate.chunk_size}")
    if certificate.failure_limit < 0:
        yield Refusal("failure_limit", f"expected at least 0, not {certificate.failure_limit}")
    yield from inconsistencies(certificate)
    yield from differences(("claim", certificate.claim, claim_text(domain, certificate.errors)))
    yield from _wrong_cases(certificate, domain, checkpoint)
    plan = Plan(certificate.chunk_size, certificate.failure_limit, how.jobs)
    if how.is_full(certificate):
        yield from _wrong_totals(certificate, domain, checkpoint, plan, progress)
    else:
        yield from _wrong_chunks(certificate, domain, checkpoint, how, progress)


def _wrong_cases(certificate: Certificate, domain: Domain, checkpoint: Checkpoint) -> Iterator[Refusal]:
    """Listed failures and the least margin, computed one by one."""
    indices = [failure.index for failure in certificate.failures]
    if any(later <= earlier for earlier, later in pairwise(indices)) or not _inside(indices, domain):
        yield Refusal("failures", "the indices are not increasing and in the domain")
        return
    if not _inside([certificate.least.index], domain):
        yield Refusal("least", f"index {certificate.least.index} is not in the domain")
        return
    answers, margins = _judged(domain, checkpoint, [*indices, certificate.least.index])
    cases = zip(indices, answers, margins, strict=False)
    found = listed(domain, tuple(Failure(index, answer, margin) for index, answer, margin in cases))
    for claimed, computed in zip(certificate.failures, found, strict=True):
        same = claimed.problem == computed.problem and claimed.right == computed.right
        same = same and claimed.answer == computed.answer and computed.margin <= 0
        if not same or abs(claimed.margin - computed.margin) > MARGIN:
            yield Refusal("failures", f"the certificate says {short(claimed)}, found {short(computed)}")
    least = Least(certificate.least.index, problem_text(domain, certificate.least.index))
    yield from differences(("least", certificate.least, least))
    if abs(margins[-1] - certificate.least_margin) > MARGIN:
        yield Refusal("least_margin", f"{least.problem} has {margins[-1]}, not {certificate.least_margin}")


def _wrong_totals(
    certificate: Certificate, domain: Domain, checkpoint: Checkpoint, plan: Plan, progress: Progress
) -> Iterator[Refusal]:
    """What differs after computing everything anew."""
    totals = totals_anew(domain, checkpoint, plan, progress)
    yield from differences(
        ("domain_sha256", certificate.domain_sha256, totals.sha256),
        ("errors", certificate.errors, totals.errors),
        (
            "failures",
            [failure.index for failure in certificate.failures],
            [failure.index for failure in totals.failures],
        ),
        ("counts", certificate.counts, totals.counts),
    )
    if abs(certificate.least_margin - totals.least_margin) > MARGIN:
        yield Refusal("least_margin", f"{certificate.least_margin} is not the least, {totals.least_margin} is")
    for number, (claimed, found) in enumerate(zip(certificate.chunks, totals.chunks, strict=True)):
        yield from _wrong_line(number, claimed, found)


def _wrong_chunks(
    certificate: Certificate, domain: Domain, checkpoint: Checkpoint, how: Check, progress: Progress
) -> Iterator[Refusal]:
    """What differs after computing some chunks anew, their failures among the listed ones included."""
    numbers = sorted(how.rng.choice(len(certificate.chunks), how.sample, replace=False).tolist())
    ranges = [range_of(number, domain.size, certificate.chunk_size) for number in numbers]
    work = work_of(domain, checkpoint, certificate.failure_limit)
    known = {failure.index for failure in certificate.failures}
    last = certificate.failures[-1].index if len(known) < certificate.errors and known else domain.size
    chunks = judged_chunks(work, ranges, how.jobs)
    for done, (number, (chunk, _)) in enumerate(zip(numbers, chunks, strict=True), 1):
        progress(done, len(numbers))
        line = ChunkLine(chunk.sha256, chunk.errors, chunk.least_margin)
        yield from _wrong_line(number, certificate.chunks[number], line)
        found = {failure.index for failure in chunk.failures if failure.index <= last}
        if certificate.failure_limit and found != {index for index in known if chunk.start <= index < chunk.stop}:
            yield Refusal("failures", f"those of chunk {number} are not all listed")


def _wrong_line(number: int, claimed: ChunkLine, found: ChunkLine) -> Iterator[Refusal]:
    same = (claimed.sha256, claimed.errors) == (found.sha256, found.errors)
    if not same or abs(claimed.least_margin - found.least_margin) > MARGIN:
        yield Refusal("chunks", f"chunk {number}: the certificate says {short(claimed)}, found {short(found)}")


def _judged(domain: Domain, checkpoint: Checkpoint, indices: list[int]) -> tuple[list[int], list[float]]:
    """Answers and margins of some sequences."""
    sequences = domain.sequences(np.array(indices))
    model = model_of(domain.task, checkpoint.parameters, str(checkpoint.path))
    judged = judge(model, *map(torch.from_numpy, (sequences.tokens, sequences.answers)))
    return judged.answers.tolist(), [rounded(margin) for margin in judged.margins]


def _inside(indices: list[int], domain: Domain) -> bool:
    return all(0 <= index < domain.size for index in indices)
