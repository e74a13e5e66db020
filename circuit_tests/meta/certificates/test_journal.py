"""Work on a certificate that was stopped goes on, whatever happened to its journal."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aa_core.certificates.catalogue import domain_of
from aa_core.certificates.certificate import Certificate
from aa_core.certificates.certification import Plan, certify
from aa_core.certificates.domain import Domain
from aa_core.checkpoints import Checkpoint
from aa_core.errors import InputError
from circuit_tests.meta.certificates.cases import PLAN, findings, quiet
from circuit_tests.meta.tiny import StoppedError

N_STOPPED = 5


def stop(done: int, total: int) -> None:
    if done == N_STOPPED:
        raise StoppedError


def stopped(domain: Domain, checkpoint: Checkpoint, plan: Plan, cache: Path) -> Path:
    """The journal of work that was stopped after some chunks."""
    with pytest.raises(StoppedError):
        certify(domain, checkpoint, plan, cache, stop)
    [journal] = cache.rglob("*.journal")
    return journal


def rechained(lines: list[bytes]) -> list[bytes]:
    """Lines of a journal with checksums that fit."""
    checksum, result = "", []
    for line in lines:
        data = line.partition(b" ")[2].removesuffix(b"\n")
        checksum = hashlib.sha256(checksum.encode() + data).hexdigest()
        result.append(f"{checksum} ".encode() + data + b"\n")
    return result


def one_error_fewer(line: bytes) -> bytes:
    """A line whose chunk has one error fewer, but not in its counts."""
    before, errors, after = re.split(rb'(?<="errors": )(\d+)', line, maxsplit=1)
    return before + str(int(errors) - 1).encode() + after


Lines = list[bytes]


# What is done to the lines (the key, then five chunks), and the chunks that are kept.
DAMAGES: dict[str, tuple[Callable[[Lines], Lines], int]] = {
    "none": (lambda lines: lines, 5),
    "half a line": (lambda lines: [*lines, b"half a line"], 5),
    "half a checked line": (lambda lines: [*lines, lines[5][:-1]], 5),
    "no checksum": (lambda lines: [*lines, b"no checksum\n"], 5),
    "not UTF-8": (lambda lines: rechained([*lines, b"x \xff\n"]), 5),
    "a changed number": (lambda lines: [*lines[:3], lines[3].replace(b'"errors": ', b'"errors": 1'), *lines[4:]], 2),
    "lost in the middle": (lambda lines: [*lines[:3], *lines[4:]], 2),
    "doubled": (lambda lines: [*lines[:3], lines[2], *lines[3:]], 2),
    "swapped": (lambda lines: [*lines[:3], lines[4], lines[3], lines[5]], 2),
    "lost, checksums renewed": (lambda lines: rechained([*lines[:3], *lines[4:]]), 2),
    "doubled, checksums renewed": (lambda lines: rechained([*lines[:3], lines[2], *lines[3:]]), 2),
    "no chunk, checksums renewed": (lambda lines: rechained([*lines[:4], b"x {}\n", *lines[4:]]), 3),
    "text for a number, checksums renewed": (
        lambda lines: rechained([*lines[:4], lines[4].replace(b'"errors": ', b'"errors": "x", "e": '), lines[5]]),
        3,
    ),
    "errors that the counts deny, checksums renewed": (
        lambda lines: rechained([*lines[:4], one_error_fewer(lines[4]), lines[5]]),
        3,
    ),
    "another key": (lambda lines: rechained([b"x other\n", *lines[1:]]), 0),
    "empty": (lambda lines: [], 0),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_stopped_work_goes_on_before_the_damage(
    checkpoint: Checkpoint, domain: Domain, certificate: Certificate, tmp_path: Path, damage: str
) -> None:
    journal = stopped(domain, checkpoint, PLAN, tmp_path)
    change, kept = DAMAGES[damage]
    lines = journal.read_bytes().splitlines(keepends=True)
    assert rechained(lines) == lines
    journal.write_bytes(b"".join(change(lines)))
    told: list[int] = []
    resumed = certify(domain, checkpoint, PLAN, tmp_path, lambda done, total: told.append(done))
    assert told == list(range(kept, 9)), "finished chunks are not judged again, others are"
    assert findings(resumed) == findings(certificate)


def test_lines_after_the_last_chunk(checkpoint: Checkpoint, certificate: Certificate, tmp_path: Path) -> None:
    domain = domain_of("1-var-one-assignment", {}, checkpoint.split)
    with pytest.raises(InputError, match="absent"):  # the work is done but nothing could be written
        certify(domain, checkpoint, PLAN, tmp_path, quiet, Path("/dev/null/absent.json"))
    [journal] = tmp_path.rglob("*.journal")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(rechained([*lines, lines[-1]])))
    told: list[int] = []
    resumed = certify(domain, checkpoint, PLAN, tmp_path, lambda done, total: told.append(done))
    assert told == [8]
    assert findings(resumed) == findings(certificate)
    assert not list(tmp_path.rglob("*.journal")), "the journal is done with"


def test_the_journal_serves_other_limits_on_failures(
    checkpoint: Checkpoint, domain: Domain, certificate: Certificate, tmp_path: Path
) -> None:
    stopped(domain, checkpoint, PLAN, tmp_path)
    told: list[int] = []
    with pytest.raises(StoppedError):
        certify(domain, checkpoint, replace(PLAN, failure_limit=3), tmp_path, stop)
    more = replace(PLAN, failure_limit=10**6)
    resumed = certify(domain, checkpoint, more, tmp_path, lambda done, total: told.append(done))
    fewest = next(number for number, line in enumerate(certificate.chunks) if line.errors > PLAN.failure_limit)
    assert told[0] == fewest < N_STOPPED, "a chunk that lists too few is judged again"
    assert len(resumed.failures) == resumed.errors


def test_two_processes_do_not_share_a_journal(checkpoint: Checkpoint, domain: Domain, tmp_path: Path) -> None:
    def again(done: int, total: int) -> None:
        certify(domain, checkpoint, PLAN, tmp_path, quiet)

    with pytest.raises(InputError, match="another process works on"):
        certify(domain, checkpoint, PLAN, tmp_path, again)
