"""Named training recipes. Adding one changes no run that exists."""

from __future__ import annotations

import dataclasses

from aa_core.training.config import TrainConfig

RECIPES: dict[str, TrainConfig] = {
    "paper": TrainConfig(),
    "fast": TrainConfig(steps=16_000, learning_rate=2e-3, decay_steps=3_000, weight_decay=0.05),
}


def recipe_name(config: TrainConfig) -> str:
    """Name of the recipe that a config follows up to its seed, or `custom`."""
    for name, recipe in RECIPES.items():
        if dataclasses.replace(recipe, seed=config.seed) == config:
            return name
    return "custom"
