"""The committed certificates are of the fixture and of the code at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aa_core.certificates.catalogue import domain_of
from aa_core.certificates.certificate import read_certificate
from aa_core.certificates.certification import certificate_code_hash
from aa_core.certificates.checking import Check, check_certificate
from aa_core.checkpoints import load_checkpoint
from aa_core.fixtures import fixture_folder
from aa_core.report.certificates_page import certificates_page, load_certificates
from circuit_tests.meta.certificates.cases import quiet

ROOT = Path(__file__).parents[3]


COMMITTED = Path("docs/certificates")


def test_committed_certificates_are_of_the_fixture_and_of_this_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    final = load_checkpoint(fixture_folder() / "checkpoints/step_040000.safetensors")
    committed = load_certificates(COMMITTED)
    assert "1-var-one-assignment" in committed
    for name, certificate in committed.items():
        renew = f"run: aa certify --domain {certificate.domain} --output {COMMITTED}/{name}.json"
        assert certificate.weights_sha256 == final.sha256, renew
        domain = domain_of(certificate.domain, certificate.parameters, final.split)
        assert certificate.code_sha256 == certificate_code_hash(domain), renew
    page = (ROOT / "docs/certificates.md").read_text()
    assert page == certificates_page(committed, COMMITTED), (
        f"run: aa certify --list {COMMITTED} --markdown {COMMITTED}.md"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(file.stem for file in (ROOT / COMMITTED).glob("*.json")))
def test_a_sample_of_a_committed_certificate_holds(name: str) -> None:
    file = read_certificate(ROOT / COMMITTED / f"{name}.json")
    final = load_checkpoint(fixture_folder() / "checkpoints/step_040000.safetensors")
    assert check_certificate(file, final, Check(4, 1, np.random.default_rng(0)), quiet) is None
