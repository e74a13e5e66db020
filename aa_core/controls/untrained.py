"""A model that never learned anything."""

from __future__ import annotations

import torch

from aa_core.circuits.subject import Subject
from aa_core.controls.control import Control
from aa_core.model.parameters import Parameters


def random_weights(subject: Subject, seed: int) -> Parameters:
    """Normal weights of the model's shapes with mean 0 and, as standard deviation, the root mean square of its own."""
    squares = torch.cat([weight.double().square().flatten() for weight in subject.parameters.values()])
    std = float(squares.mean().sqrt())
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(weight.shape, generator=generator) * std for name, weight in subject.parameters.items()}


CONTROLS = (
    Control("random", "Fresh weights of the model's sizes and mean scale, so that nothing is learned.", random_weights),
)
