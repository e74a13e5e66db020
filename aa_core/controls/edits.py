"""Edits of parameters and draws of matrices that controls and symmetries share. Matrices are made in float64."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from aa_core.model.parameters import Parameters, attention_weights


def edited(parameters: Parameters, **changes: Tensor) -> Parameters:
    """The parameters with some replaced, in the old ones' dtype.

    Args:
        parameters: what to start from.
        changes: new values by the last part of the name, with the layer for a head's: `W_E`, `W_in`, `W_Q0`. A head's
            matrix has no axis of heads.
    """
    new = dict(parameters)
    for name, value in changes.items():
        full = next(full for full in parameters if _short(full) == name)
        value = value.to(parameters[full].dtype)
        new[full] = value[None] if ".attn." in full else value
    return new


def _short(name: str) -> str:
    layer = name.split(".")[1] if ".attn." in name else ""
    return name.rsplit(".", 1)[-1] + layer


def symbols(parameters: Parameters) -> Float[Tensor, "symbols d_model"]:
    """The embeddings of tokens, then of positions, in float64."""
    return torch.cat([parameters["embed.W_E"], parameters["pos_embed.W_pos"]]).double()


def shifted_scores(
    parameters: Parameters, queries: Int[np.ndarray, " queries"], keys: Int[np.ndarray, " keys"], shift: float
) -> Parameters:
    """Add `shift` nats to the blocks.0 score of some query symbols against some key symbols, and to no other.

    Scores are bilinear in the symbols, so where these are linearly independent there is one such change of
    `W_Q W_K^T` that acts within their span; else the change is the nearest one in least squares. Cut back to
    `d_head` dimensions by its singular values.
    """
    q, k, _, _ = (weight.double() for weight in attention_weights(parameters, 0))
    dual = torch.linalg.pinv(symbols(parameters))
    scale = q.shape[1] ** 0.5
    changed = q @ k.T + shift * scale * torch.outer(dual[:, queries].sum(1), dual[:, keys].sum(1))
    left, singular, right = torch.linalg.svd(changed)
    kept = min(q.shape)
    root = singular[:kept].sqrt()
    q, k = torch.zeros_like(q), torch.zeros_like(k)
    q[:, :kept], k[:, :kept] = left[:, :kept] * root, right[:kept].T * root
    return edited(parameters, W_Q0=q, W_K0=k)


def derangement(n: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    """A random permutation that moves everything: one cycle through all `n`."""
    order = rng.permutation(n)
    moved = np.empty(n, dtype=np.int64)
    moved[order] = np.roll(order, -1)
    return moved


def orthogonal(n: int, rng: np.random.Generator) -> Float[Tensor, "n n"]:
    """A random orthogonal matrix, uniform by Haar's measure."""
    q, r = np.linalg.qr(rng.standard_normal((n, n)))
    return torch.from_numpy(q * np.sign(np.diag(r)))


def invertible(n: int, rng: np.random.Generator, spread: float) -> Float[Tensor, "n n"]:
    """A random matrix whose singular values lie between `exp(-spread)` and `exp(spread)`."""
    stretch = torch.from_numpy(np.exp(spread * rng.uniform(-1, 1, n)))
    return orthogonal(n, rng) * stretch @ orthogonal(n, rng)
