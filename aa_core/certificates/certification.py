"""Making a certificate: every sequence of a domain judged."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aa_core.certificates.certificate import FORMAT, Certificate, Least, ListedFailure
from aa_core.certificates.chunk import Chunk, Failure
from aa_core.certificates.consistency import found_text
from aa_core.certificates.domain import Domain
from aa_core.certificates.enumeration import judged_chunks, ranges_of, work_of
from aa_core.certificates.journal import Journal, open_journal
from aa_core.certificates.memory import peak_mib
from aa_core.certificates.totals import Totals, totals_of
from aa_core.checkpoints import Checkpoint
from aa_core.files import write_atomically
from aa_core.runs.environment import versions
from aa_core.task.problems import problem_from_tokens
from aa_core.training.codehash import code_hash

CHUNK_SIZE = 2**16
FAILURE_LIMIT = 1000
ROOTS = ("aa_core.certificates.chunk", "aa_core.certificates.totals")

Progress = Callable[[int, int], None]
"""Told of the chunks that are done, of how many."""


@dataclass(frozen=True)
class Plan:
    """How a domain is enumerated.

    Attributes:
        chunk_size: sequences a chunk.
        failure_limit: most failures that are listed.
        jobs: processes; 1 is this one.
    """

    chunk_size: int = CHUNK_SIZE
    failure_limit: int = FAILURE_LIMIT
    jobs: int = 1


def certify(
    domain: Domain, checkpoint: Checkpoint, plan: Plan, cache: Path, progress: Progress, output: Path | None = None
) -> Certificate:
    """Judge every sequence of a domain, going on from where an earlier process stopped.

    Args:
        domain: the sequences; of the checkpoint's task.
        checkpoint: the model.
        plan: how.
        cache: folder for the journal.
        progress: told of every chunk.
        output: where to write the certificate; only then is the journal deleted.

    Raises:
        InputError: a logit is not finite, a worker was ended, the journal or the output cannot be written, or another
            process works on the same.
    """
    code = certificate_code_hash(domain)
    key = _key(domain, checkpoint, plan, code)
    path = cache / "certificates" / f"{domain.name}-{key}.journal"
    with open_journal(path, key, domain.size, plan.chunk_size, plan.failure_limit) as journal:
        totals = totals_of(_all_chunks(domain, checkpoint, journal, plan, progress), plan.failure_limit)
        certificate = _certificate(domain, checkpoint, plan, code, totals, journal)
        if output is not None:
            write_atomically(output, certificate.json())
    return certificate


def _certificate(
    domain: Domain, checkpoint: Checkpoint, plan: Plan, code: str, totals: Totals, journal: Journal
) -> Certificate:
    return Certificate(
        format=FORMAT,
        claim=claim_text(domain, totals.errors),
        domain=domain.name,
        parameters=domain.parameters,
        task=domain.task,
        split=checkpoint.split.config,
        weights_sha256=checkpoint.sha256,
        code_sha256=code,
        domain_sha256=totals.sha256,
        size=totals.size,
        errors=totals.errors,
        least_margin=totals.least_margin,
        least=Least(totals.least_index, problem_text(domain, totals.least_index)),
        counts=totals.counts,
        failure_limit=plan.failure_limit,
        failures=listed(domain, totals.failures),
        chunk_size=plan.chunk_size,
        chunks=totals.chunks,
        versions=versions(),
        device="cpu",
        jobs=plan.jobs,
        seconds=round(journal.seconds, 3),
        process_mib=max(journal.peak_mib, peak_mib()),
    )


def totals_anew(domain: Domain, checkpoint: Checkpoint, plan: Plan, progress: Progress) -> Totals:
    """The verdict on every sequence of a domain, without a journal."""
    work = work_of(domain, checkpoint, plan.failure_limit)
    ranges = ranges_of(domain.size, plan.chunk_size)

    def chunks() -> Iterator[Chunk]:
        for done, (chunk, _) in enumerate(judged_chunks(work, ranges, plan.jobs), 1):
            progress(done, len(ranges))
            yield chunk

    return totals_of(chunks(), plan.failure_limit)


def claim_text(domain: Domain, errors: int) -> str:
    """What was found, in words."""
    return f"{found_text(domain.size, errors)}: {domain.statement}."


def certificate_code_hash(domain: Domain) -> str:
    """Hash of the modules that enumerate the domain and judge it."""
    return _hash_of_modules((*ROOTS, type(domain).__module__))


@functools.cache
def _hash_of_modules(names: tuple[str, ...]) -> str:
    return code_hash(names)


def problem_text(domain: Domain, index: int) -> str:
    """A sequence of a domain as `aa ask` reads it."""
    [tokens] = domain.sequences(np.array([index])).tokens
    return problem_from_tokens(domain.task, tokens).text(domain.task)


def listed(domain: Domain, failures: tuple[Failure, ...]) -> tuple[ListedFailure, ...]:
    """Failures with what a person needs to ask again."""
    rights = domain.sequences(np.array([failure.index for failure in failures], dtype=np.int64)).answers.tolist()
    return tuple(
        ListedFailure(failure.index, problem_text(domain, failure.index), right, failure.answer, failure.margin)
        for failure, right in zip(failures, rights, strict=True)
    )


def _all_chunks(
    domain: Domain, checkpoint: Checkpoint, journal: Journal, plan: Plan, progress: Progress
) -> Iterator[Chunk]:
    """Chunks of the journal, then the others, which are added to it."""
    work = work_of(domain, checkpoint, plan.failure_limit)
    ranges = ranges_of(domain.size, plan.chunk_size)
    yield from journal.chunks()
    started = time.perf_counter() - journal.seconds
    progress(journal.n_chunks, len(ranges))
    for chunk, peak in judged_chunks(work, ranges[journal.n_chunks :], plan.jobs):
        journal.append(chunk, time.perf_counter() - started, peak)
        progress(journal.n_chunks, len(ranges))
        yield chunk


def _key(domain: Domain, checkpoint: Checkpoint, plan: Plan, code: str) -> str:
    """Names the work: whatever decides a chunk but for how many failures are listed."""
    what = (
        domain.name,
        dict(domain.parameters),
        dataclasses.asdict(domain.task),
        dataclasses.asdict(checkpoint.split.config),
        checkpoint.sha256,
        code,
        plan.chunk_size,
    )
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
