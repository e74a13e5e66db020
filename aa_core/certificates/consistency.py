"""What can be said against a certificate without the model: its seals, and numbers that do not fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aa_core.certificates.certificate import SEALS, Certificate, CertificateFile
from aa_core.certificates.enumeration import n_chunks
from aa_core.certificates.totals import domain_sha256


@dataclass(frozen=True)
class Refusal:
    """Why a certificate does not hold: the first field that is wrong, and how."""

    field: str
    reason: str


def found_text(size: int, errors: int) -> str:
    """The count that a claim begins with."""
    if errors == 0:
        return f"All {size:,} answers of the model are right"
    return f"{size - errors:,} of {size:,} answers of the model are right"


def broken_seals(file: CertificateFile) -> Iterator[Refusal]:
    """Fields that were changed, or that no certificate has."""
    for name in file.unknown:
        yield Refusal(name, "no certificate has this field")
    seals = file.certificate.seals
    for name, seal in seals.items():
        if file.seals.get(name) != seal:
            yield Refusal(name, "changed since the certificate was written: its seal does not fit")
    for name in file.seals.keys() - seals.keys():
        yield Refusal(SEALS, f"there is no field {name}")


def inconsistencies(certificate: Certificate) -> Iterator[Refusal]:
    """Numbers that do not fit each other; nothing after the first is of meaning."""
    size, errors, lines = certificate.size, certificate.errors, certificate.chunks
    if size < 1:
        yield Refusal("size", f"expected at least 1, not {short(size)}")
    if certificate.chunk_size < 1:
        yield Refusal("chunk_size", f"expected at least 1, not {short(certificate.chunk_size)}")
    if len(lines) != n_chunks(size, certificate.chunk_size):
        yield Refusal("chunks", f"expected {short(n_chunks(size, certificate.chunk_size))}, not {len(lines)}")
    yield from differences(
        ("domain_sha256", certificate.domain_sha256, domain_sha256(line.sha256 for line in lines)),
        ("errors", errors, sum(line.errors for line in lines)),
        ("least_margin", certificate.least_margin, min(line.least_margin for line in lines)),
        ("failures", len(certificate.failures), min(errors, certificate.failure_limit)),
    )
    if not 0 <= errors <= size:
        yield Refusal("errors", f"expected 0 to {short(size)}, not {short(errors)}")
    for name, labels in certificate.counts.items():
        counts = labels.values()
        inside = all(0 <= count.errors <= count.size > 0 for count in counts)
        if not inside or (sum(count.size for count in counts), sum(count.errors for count in counts)) != (size, errors):
            yield Refusal("counts", f"those by {name} do not add up to size and errors")
    if not certificate.claim.startswith(f"{found_text(size, errors)}: "):
        yield Refusal("claim", f"expected {short(found_text(size, errors))}, not {short(certificate.claim)}")


def differences(*fields: tuple[str, Any, Any]) -> Iterator[Refusal]:
    """Fields whose claimed value is not the one that was found."""
    for name, claimed, found in fields:
        if claimed != found:
            yield Refusal(name, f"the certificate says {short(claimed)}, found {short(found)}")


def short(value: object) -> str:
    """A value for a line of a message."""
    text = str(value)
    return text if len(text) <= 120 else f"{text[:100]}..."
