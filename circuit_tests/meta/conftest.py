from __future__ import annotations

import pytest

from aa_core.runs import Run
from circuit_tests.meta.tiny import TINY, tiny_store


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The tiny run, never interrupted."""
    return tiny_store(tmp_path_factory.mktemp("reference")).run(TINY)
