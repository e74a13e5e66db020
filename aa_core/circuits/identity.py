"""The identity block: blocks.1's QK circuit on variables as blocks.0's OV circuit writes them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from aa_core.circuits.subject import Subject
from aa_core.model.parameters import attention_weights
from aa_core.statistics import Measurement, exact


def identity_block(subject: Subject) -> Float[np.ndarray, "variables variables"]:
    """`M[i, j]`: blocks.1 score of variable i, carried to the query by blocks.0, against variable j carried to a key.

    M = V (W_Q W_K^T) V^T / sqrt(d_head) with V = W_E[variables] W_V W_O of blocks.0.
    """
    _, _, v0, o0 = attention_weights(subject.parameters, 0)
    q1, k1, _, _ = attention_weights(subject.parameters, 1)
    carried = subject.variable_embeddings() @ v0 @ o0
    return ((carried @ q1) @ (carried @ k1).T / q1.shape[1] ** 0.5).double().numpy()


def _off_diagonal(block: np.ndarray) -> np.ndarray:
    return block[~np.eye(len(block), dtype=bool)]


def _spread(block: np.ndarray) -> float:
    """Standard deviation off the diagonal, at least what float32 can tell from 0 beside the largest entry."""
    least = float(np.finfo(np.float32).eps) * float(np.abs(block).max())
    return max(float(_off_diagonal(block).std()), least, float(np.finfo(float).tiny))


def diagonal_argmax(subject: Subject, block: Float[np.ndarray, "variables variables"]) -> Measurement:
    """Share of variables whose row of a block is largest on the diagonal."""
    hits = block.argmax(1) == np.arange(len(block))
    missed = "".join(np.array(list(subject.task.variables))[~hits])
    return exact(hits.mean(), len(block), note=f"not for {missed}" if missed else "")


def diagonal_z(block: Float[np.ndarray, "variables variables"]) -> Measurement:
    """(mean of the diagonal - mean off it) / standard deviation off it."""
    return exact((np.diag(block).mean() - _off_diagonal(block).mean()) / _spread(block), len(block))


def identity_argmax(subject: Subject) -> Measurement:
    """`diagonal_argmax` of the identity block."""
    return diagonal_argmax(subject, identity_block(subject))


def identity_z(subject: Subject) -> Measurement:
    """`diagonal_z` of the identity block."""
    return diagonal_z(identity_block(subject))


def identity_margins(subject: Subject) -> Float[np.ndarray, " variables"]:
    """Diagonal entry minus the largest other one of its row, in standard deviations off the diagonal."""
    block = identity_block(subject)
    rival = np.where(np.eye(len(block), dtype=bool), -np.inf, block).max(1)
    return (np.diag(block) - rival) / _spread(block)


def identity_margin(subject: Subject) -> Measurement:
    """Mean margin over variables."""
    margins = identity_margins(subject)
    return exact(margins.mean(), len(margins))


def identity_least_margin(subject: Subject) -> Measurement:
    """Least margin over variables."""
    margins = identity_margins(subject)
    return exact(margins.min(), len(margins), note=f"least for {subject.task.variables[margins.argmin()]}")


def identity_energy(subject: Subject) -> Measurement:
    """Share of the double-centred block's squared norm that lies on its diagonal."""
    block = identity_block(subject)
    centred = block - block.mean(0) - block.mean(1, keepdims=True) + block.mean()
    total = max(float((centred**2).sum()), np.finfo(float).tiny)
    return exact((np.diag(centred) ** 2).sum() / total, len(block))
