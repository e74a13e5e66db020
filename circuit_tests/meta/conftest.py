from __future__ import annotations

import pytest
import torch

from aa_core.circuits.subject import Subject
from aa_core.model.parameters import initial_parameters
from aa_core.runs import Run
from circuit_tests.meta.compiled_model import DATA, RANDOM, SPLIT, TASK, D, compiled_subject
from circuit_tests.meta.tiny import TINY, tiny_store


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The tiny run, never interrupted."""
    return tiny_store(tmp_path_factory.mktemp("reference")).run(TINY)


@pytest.fixture(scope="module")
def compiled() -> Subject:
    return compiled_subject()


@pytest.fixture(scope="module")
def good() -> Subject:
    """A model that composes, with a previous-token head that prefers its place by 10 nats rather than by 40."""
    return compiled_subject(W_Q0=10 * D**0.5 * torch.eye(D))


@pytest.fixture(scope="module")
def random_model() -> Subject:
    """A random model of a scale at which every place matters to its answers."""
    return Subject(initial_parameters(TASK, RANDOM, 2.5, 0), SPLIT, DATA)
