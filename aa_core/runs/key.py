"""What identifies a run: its config and the code that trains it."""

from __future__ import annotations

import dataclasses
import hashlib
import json

from pydantic import TypeAdapter

from aa_core.training.config import TrainConfig
from aa_core.training.recipes import recipe_name


def config_json(config: TrainConfig) -> str:
    """A config as JSON text, the same for equal configs (`1` and `1.0` as a learning rate, say)."""
    normal = TypeAdapter(TrainConfig).validate_python(dataclasses.asdict(config))
    return json.dumps(dataclasses.asdict(normal), indent=2, sort_keys=True) + "\n"


def run_key(config: TrainConfig, code: str) -> str:
    """16 hexadecimal digits that differ wherever the config or the hash of the training code does."""
    return hashlib.sha256(f"{config_json(config)}{code}\n".encode()).hexdigest()[:16]


def run_name(config: TrainConfig, code: str) -> str:
    """Name of a run's folder, such as `fast-seed3-0123456789abcdef`."""
    return f"{recipe_name(config)}-seed{config.seed}-{run_key(config, code)}"
