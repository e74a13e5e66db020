from __future__ import annotations

import pytest

from aa_core.certificates.catalogue import domain_of
from aa_core.certificates.certificate import Certificate
from aa_core.certificates.certification import certify
from aa_core.certificates.domain import Domain
from aa_core.checkpoints import Checkpoint
from circuit_tests.meta.certificates.cases import PLAN, quiet, saved


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A random model, whose answers are right one time in five."""
    return saved(tmp_path_factory.mktemp("model") / "step_47.safetensors", 0)


@pytest.fixture(scope="module")
def domain(checkpoint: Checkpoint) -> Domain:
    return domain_of("1-var-one-assignment", {}, checkpoint.split)


@pytest.fixture(scope="module")
def certificate(checkpoint: Checkpoint, domain: Domain, tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certify(domain, checkpoint, PLAN, tmp_path_factory.mktemp("cache"), quiet)
