"""The model as the paper defines it, one query at a time: slow, differentiable, and independent of the others."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from aa_core.model.parameters import Parameters


class PlainActivations(NamedTuple):
    """Activations under the names of `symbol_space.Activations`."""

    pattern0: Float[Tensor, "batch n_ctx n_ctx"]
    pattern1: Float[Tensor, "batch n_ctx"]
    resid_mid: Float[Tensor, "batch d_model"]
    post: Float[Tensor, "batch d_mlp"]
    logits: Float[Tensor, "batch modulus"]


def plain_forward(parameters: Parameters, tokens: Int[Tensor, "batch n_ctx"]) -> PlainActivations:
    """Run the model; every query looks at itself and what is before it."""
    x = parameters["embed.W_E"][tokens] + parameters["pos_embed.W_pos"]
    patterns = []
    for layer in (0, 1):
        q, k, v = (torch.einsum("btd,de->bte", x, parameters[f"blocks.{layer}.attn.W_{part}"][0]) for part in "QKV")
        written, rows = [], []
        for query in range(tokens.shape[1]):
            scores = torch.einsum("be,bke->bk", q[:, query], k[:, : query + 1]) / q.shape[-1] ** 0.5
            weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
            z = torch.einsum("bk,bke->be", weights, v[:, : query + 1])
            written.append(z @ parameters[f"blocks.{layer}.attn.W_O"][0])
            rows.append(torch.nn.functional.pad(weights, (0, tokens.shape[1] - query - 1)))
        x = x + torch.stack(written, dim=1)
        patterns.append(torch.stack(rows, dim=1))
    resid_mid = x[:, -1]
    post = (resid_mid @ parameters["blocks.1.mlp.W_in"]).clamp(min=0)
    logits = (resid_mid + post @ parameters["blocks.1.mlp.W_out"]) @ parameters["unembed.W_U"]
    return PlainActivations(patterns[0], patterns[1][:, -1], resid_mid, post, logits)
