"""An honest certificate holds; one that was changed is refused by the field."""

from __future__ import annotations

import dataclasses
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aa_core.certificates import certification
from aa_core.certificates.catalogue import domain_of
from aa_core.certificates.certificate import Certificate, CertificateFile, read_certificate
from aa_core.certificates.certification import certificate_code_hash
from aa_core.certificates.checking import PROVENANCE
from aa_core.certificates.consistency import Refusal, found_text
from aa_core.certificates.domain import Domain
from aa_core.checkpoints import Checkpoint, load_checkpoint
from aa_core.fixtures import fixture_folder
from aa_core.task.split import SplitConfig
from aa_core.training.codehash import PACKAGE, code_hash, imported_modules, training_code_hash
from circuit_tests.meta.certificates.cases import checked, saved


def test_an_honest_certificate_holds(checkpoint: Checkpoint, certificate: Certificate, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(certificate.json())
    assert read_certificate(tmp_path / "c.json") == CertificateFile(certificate, certificate.seals)
    assert checked(certificate, checkpoint) is None
    assert checked(certificate, checkpoint, sample=3) is None


def altered(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case str():
            return value.replace("1", "2", 1) if "1" in value else f"{value}x"
        case int() | float():
            return value + 1
        case tuple():
            return (*value[:-1], altered(value[-1]))
        case dict():
            key = next(iter(value), None)
            return {**value, key: altered(value[key])} if key is not None else {"prefix": ""}
        case _:
            field = "seed" if isinstance(value, SplitConfig) else dataclasses.fields(value)[0].name
            return replace(value, **{field: altered(getattr(value, field))})


FIELDS = [field.name for field in dataclasses.fields(Certificate) if field.name != "format"]


@pytest.mark.parametrize("field", FIELDS)
def test_any_field_that_was_changed_is_named(checkpoint: Checkpoint, certificate: Certificate, field: str) -> None:
    forged = replace(certificate, **{field: altered(getattr(certificate, field))})
    refusal = checked(forged, checkpoint, sample=1, seals=certificate.seals)
    assert refusal is not None
    assert refusal.field == field


# Where two fields no longer fit each other, the first in the order of checking is named.
NAMED = {"chunks": {"domain_sha256"}, "chunk_size": {"domain_sha256", "chunks"}, "failure_limit": {"failures"}}


@pytest.mark.parametrize("sample", [None, 1])
@pytest.mark.parametrize("field", [field for field in FIELDS if field not in PROVENANCE])
def test_a_change_with_its_seal_renewed_is_found_from_the_weights(
    checkpoint: Checkpoint, certificate: Certificate, field: str, sample: int | None
) -> None:
    forged = replace(certificate, **{field: altered(getattr(certificate, field))})
    refusal = checked(forged, checkpoint, sample)
    assert refusal is not None
    assert refusal.field in NAMED.get(field, {field})
    assert "\n" not in refusal.reason


def forge_chunk(certificate: Certificate, number: int) -> Certificate:
    """One error fewer in a chunk, and every number that depends on it changed along; no failure is listed."""
    line = certificate.chunks[number]
    chunks = list(certificate.chunks)
    chunks[number] = replace(line, errors=line.errors - 1)
    errors = certificate.errors - 1
    return replace(
        certificate,
        errors=errors,
        claim=certificate.claim.replace(
            found_text(certificate.size, certificate.errors), found_text(certificate.size, errors)
        ),
        chunks=tuple(chunks),
        failures=(),
        failure_limit=0,
        counts={},
    )


def test_a_consistent_forgery_is_found_by_the_chunk(checkpoint: Checkpoint, certificate: Certificate) -> None:
    n = len(certificate.chunks)
    found = [checked(forge_chunk(certificate, number), checkpoint, sample=1) for number in range(n)]
    assert sum(refusal is not None for refusal in found) == 1, "one random chunk finds one of the forgeries"
    assert {refusal.field for refusal in found if refusal} == {"chunks"}
    whole = [checked(forge_chunk(certificate, number), checkpoint, sample=n) for number in range(n)]
    assert {refusal.field for refusal in whole if refusal} == {"errors"}, "a sample of all chunks is the full check"
    assert None not in whole
    refusal = checked(forge_chunk(certificate, 0), checkpoint)
    assert refusal is not None
    assert refusal.field == "errors"


def test_least_margin_that_is_not_the_least(checkpoint: Checkpoint, certificate: Certificate) -> None:
    other = certificate.failures[0]
    least = replace(certificate.least, index=other.index, problem=other.problem)
    lines = tuple(replace(line, least_margin=max(line.least_margin, other.margin)) for line in certificate.chunks)
    forged = replace(certificate, least=least, least_margin=min(line.least_margin for line in lines), chunks=lines)
    assert forged.least_margin == other.margin
    refusal = checked(forged, checkpoint)
    assert refusal is not None
    assert refusal.field == "least_margin"


def test_failures_left_out_or_doubled(checkpoint: Checkpoint, certificate: Certificate) -> None:
    first, second, *rest = certificate.failures
    for failures in ((first, *rest), (first, first, *rest), (second, first, *rest)):
        refusal = checked(replace(certificate, failures=tuple(failures)), checkpoint)
        assert refusal is not None
        assert refusal.field == "failures"
    shorter = replace(certificate, failures=(first, *rest), failure_limit=len(rest) + 1)
    refusal = checked(shorter, checkpoint)
    assert refusal is not None
    assert refusal.field == "failures"
    refusal = checked(shorter, checkpoint, sample=len(certificate.chunks))
    assert refusal is not None
    assert refusal.field == "failures"


def test_other_weights_are_refused(certificate: Certificate, tmp_path: Path) -> None:
    refusal = checked(certificate, saved(tmp_path / "other.safetensors", 1))
    assert refusal is not None
    assert refusal.field == "weights_sha256"


def test_another_split_is_refused(certificate: Certificate, checkpoint: Checkpoint) -> None:
    other = load_checkpoint(checkpoint.path, SplitConfig(never_left="c", never_right="a", seed=7))
    refusal = checked(certificate, other)
    assert refusal is not None
    assert refusal.field == "split"


def test_other_code_is_refused(
    certificate: Certificate, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = (*certification.ROOTS, "aa_core.certificates.journal")
    monkeypatch.setattr(certification, "ROOTS", roots)
    refusal = checked(certificate, checkpoint)
    assert refusal is not None
    assert refusal.field == "code_sha256"


def test_the_code_hash_covers_what_decides_the_verdict(checkpoint: Checkpoint, domain: Domain) -> None:
    covered = {name for root in certification.ROOTS for name in imported_modules(PACKAGE, root)}
    needed = {"certificates.exposure", "certificates.domain", "model.symbol_space", "task.sequences"}
    assert {f"aa_core.{name}" for name in needed} <= covered
    two = domain_of("2-var-two-assignments", {}, checkpoint.split)
    assert certificate_code_hash(two) != certificate_code_hash(domain), "the module of the domain itself counts"
    assert code_hash(("aa_core.training.optimisation",)) == training_code_hash()


def test_small_chunks_of_a_large_domain_are_refused_at_once(checkpoint: Checkpoint, certificate: Certificate) -> None:
    final = load_checkpoint(fixture_folder() / "checkpoints/step_040000.safetensors")
    domain = domain_of("2-var-two-assignments", {}, final.split)
    forged = replace(
        certificate,
        domain=domain.name,
        task=final.task,
        split=final.split.config,
        weights_sha256=final.sha256,
        code_sha256=certificate_code_hash(domain),
        size=domain.size,
        chunk_size=1,
    )
    tracemalloc.start()
    refusal = checked(forged, final, sample=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refusal == Refusal("chunks", "expected 41354280, not 8")
    assert peak < 2**26, "the chunks were listed"
