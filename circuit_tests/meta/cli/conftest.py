from __future__ import annotations

from pathlib import Path

import pytest

from aa_core.checkpoints import save_checkpoint
from aa_core.training.config import TrainConfig
from aa_core.training.recipes import RECIPES
from circuit_tests.meta.checkpoint_files import small_config, small_parameters
from circuit_tests.meta.tiny import TINY


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "model" / "step_25.safetensors"
    save_checkpoint(path, small_parameters(), small_config(), 25)
    return path


@pytest.fixture
def tiny_recipe(monkeypatch: pytest.MonkeyPatch) -> TrainConfig:
    monkeypatch.setitem(RECIPES, "tiny", TINY)
    return TINY
