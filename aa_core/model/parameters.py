"""Model parameters as a dictionary of tensors under `HookedTransformer`'s names."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from aa_core.model.config import ModelConfig, parameter_shapes
from aa_core.task.config import TaskConfig

Parameters = Mapping[str, Tensor]


def initial_parameters(task: TaskConfig, model: ModelConfig, init_scale: float, seed: int) -> dict[str, Tensor]:
    """Every weight, embeddings included, normal with mean 0 and std `init_scale / sqrt(d_model)`.

    The paper's `init_scale` is 0.8. The draw depends on `seed` alone.
    """
    generator = torch.Generator().manual_seed(seed)
    std = init_scale / model.d_model**0.5
    return {
        name: torch.randn(shape, generator=generator) * std for name, shape in parameter_shapes(task, model).items()
    }


def attention_weights(parameters: Parameters, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`W_Q, W_K, W_V` of shape [d_model, d_head] and `W_O` of shape [d_head, d_model] of `blocks.{layer}`'s head."""
    q, k, v, o = (parameters[f"blocks.{layer}.attn.{name}"][0] for name in ("W_Q", "W_K", "W_V", "W_O"))
    return q, k, v, o
