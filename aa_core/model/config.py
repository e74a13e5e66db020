"""Sizes of the two-layer transformer."""

from __future__ import annotations

from dataclasses import dataclass

from aa_core.errors import InputError
from aa_core.task.config import TaskConfig


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of the model; the defaults are the paper's.

    Two layers of one causal attention head each, an MLP with ReLU after the second one only, learned absolute
    positions, no biases, no normalisation, untied unembedding. The paper's layers 1 and 2 are `blocks.0` and
    `blocks.1`.

    Attributes:
        d_model: width of the residual stream.
        d_head: width of each head.
        d_mlp: neurons of `blocks.1.mlp`.

    Raises:
        InputError: a size is below 1.
    """

    d_model: int = 128
    d_head: int = 128
    d_mlp: int = 512

    def __post_init__(self) -> None:
        for name in ("d_model", "d_head", "d_mlp"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, expected at least 1")


def parameter_shapes(task: TaskConfig, model: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of every parameter, with `HookedTransformer`'s names and order."""
    d, h = model.d_model, model.d_head
    shapes: dict[str, tuple[int, ...]] = {
        "embed.W_E": (task.d_vocab, d),
        "pos_embed.W_pos": (task.n_ctx, d),
    }
    for layer in (0, 1):
        shapes |= {f"blocks.{layer}.attn.{name}": (1, d, h) for name in ("W_Q", "W_K", "W_V")}
        shapes[f"blocks.{layer}.attn.W_O"] = (1, h, d)
    shapes["blocks.1.mlp.W_in"] = (d, model.d_mlp)
    shapes["blocks.1.mlp.W_out"] = (model.d_mlp, d)
    shapes["unembed.W_U"] = (d, task.modulus)
    return shapes
