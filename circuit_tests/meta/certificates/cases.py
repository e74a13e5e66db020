"""A small model's certificate, and how the tests check one."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aa_core.certificates.certificate import Certificate, CertificateFile
from aa_core.certificates.certification import Plan
from aa_core.certificates.checking import PROVENANCE, Check, check_certificate
from aa_core.certificates.consistency import Refusal
from aa_core.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from aa_core.model.parameters import initial_parameters
from aa_core.task.config import TaskConfig
from aa_core.task.split import SplitConfig
from circuit_tests.meta.tiny import TINY

TASK = TaskConfig(modulus=5, n_variables=3, max_assignments=2, n_ctx=10)
CONFIG = replace(TINY, task=TASK, split=SplitConfig(never_left="c", never_right="a"))
PLAN = Plan(chunk_size=100, failure_limit=40)


def quiet(done: int, total: int) -> None:
    """No progress."""


def saved(path: Path, seed: int) -> Checkpoint:
    save_checkpoint(path, initial_parameters(CONFIG.task, CONFIG.model, 2.5, seed), CONFIG, 47)
    return load_checkpoint(path)


def checked(
    certificate: Certificate, checkpoint: Checkpoint, sample: int | None = None, seals: dict[str, Any] | None = None
) -> Refusal | None:
    how = Check(sample, 1, np.random.default_rng(0))
    file = CertificateFile(certificate, certificate.seals if seals is None else seals)
    return check_certificate(file, checkpoint, how, quiet)


def findings(certificate: Certificate) -> dict[str, Any]:
    """Everything that does not depend on how it was computed."""
    fields = dataclasses.asdict(certificate)
    return {name: value for name, value in fields.items() if name not in PROVENANCE}
