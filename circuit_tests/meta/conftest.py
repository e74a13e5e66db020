from __future__ import annotations

import pytest

from aa_core.circuits.subject import Subject
from aa_core.model.parameters import initial_parameters
from aa_core.runs import Run
from circuit_tests.meta.compiled_model import DATA, RANDOM, SPLIT, TASK, compiled_subject
from circuit_tests.meta.tiny import TINY, tiny_store


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The tiny run, never interrupted."""
    return tiny_store(tmp_path_factory.mktemp("reference")).run(TINY)


@pytest.fixture(scope="module")
def compiled() -> Subject:
    return compiled_subject()


@pytest.fixture(scope="module")
def random_model() -> Subject:
    """A random model of a scale at which every place matters to its answers."""
    return Subject(initial_parameters(TASK, RANDOM, 2.5, 0), SPLIT, DATA)
