"""Changes of the parameters that leave the model's function as it is, exactly but for rounding."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from aa_core.circuits.subject import Subject
from aa_core.controls.control import Symmetry
from aa_core.controls.edits import edited, invertible, orthogonal
from aa_core.model.parameters import Parameters, attention_weights

READING = ("W_Q0", "W_K0", "W_V0", "W_Q1", "W_K1", "W_V1")


def residual_rotated(subject: Subject, seed: int) -> Parameters:
    """Everything that writes to the residual stream turned by one orthogonal matrix, everything that reads turned back.

    Orthogonal, since cosines and norms there are measured; the function itself would bear any invertible matrix.
    """
    old = subject.parameters
    heads = _heads(subject)
    turn = orthogonal(heads["W_Q0"].shape[0], np.random.default_rng(seed))
    return edited(
        old,
        **{name: turn.T @ heads[name] for name in READING},
        **{name: heads[name] @ turn for name in ("W_O0", "W_O1")},
        W_E=old["embed.W_E"].double() @ turn,
        W_pos=old["pos_embed.W_pos"].double() @ turn,
        W_in=turn.T @ old["blocks.1.mlp.W_in"].double(),
        W_out=old["blocks.1.mlp.W_out"].double() @ turn,
        W_U=turn.T @ old["unembed.W_U"].double(),
    )


def qk_basis_changed(subject: Subject, seed: int, spread: float = 1.0) -> Parameters:
    """Queries and keys of each head in another basis, with a stretch of `exp(-spread)` to `exp(spread)`."""
    return _basis_changed(subject, seed, spread, "W_Q", "W_K", inverse_transposed=True)


def ov_basis_changed(subject: Subject, seed: int, spread: float = 1.0) -> Parameters:
    """Values of each head in another basis, with a stretch of `exp(-spread)` to `exp(spread)`."""
    return _basis_changed(subject, seed, spread, "W_V", "W_O", inverse_transposed=False)


def _basis_changed(
    subject: Subject, seed: int, spread: float, first: str, second: str, *, inverse_transposed: bool
) -> Parameters:
    rng, heads, changes = np.random.default_rng(seed), _heads(subject), {}
    for layer in (0, 1):
        a, b = heads[f"{first}{layer}"], heads[f"{second}{layer}"]
        basis = invertible(a.shape[1], rng, spread)
        inverse = torch.linalg.inv(basis)
        changes |= {
            f"{first}{layer}": a @ basis,
            f"{second}{layer}": b @ inverse.T if inverse_transposed else inverse @ b,
        }
    return edited(subject.parameters, **changes)


def neurons_permuted(subject: Subject, seed: int) -> Parameters:
    """Neurons of the MLP in another order."""
    w_in, w_out = _mlp(subject)
    order = np.random.default_rng(seed).permutation(len(w_out))
    return edited(subject.parameters, W_in=w_in[:, order], W_out=w_out[order])


def neurons_rescaled(subject: Subject, seed: int, spread: float = 1.0) -> Parameters:
    """Each neuron's inputs times a factor between `exp(-spread)` and `exp(spread)`, its outputs divided by it."""
    w_in, w_out = _mlp(subject)
    factor = torch.from_numpy(np.exp(spread * np.random.default_rng(seed).uniform(-1, 1, len(w_out))))
    return edited(subject.parameters, W_in=w_in * factor, W_out=w_out / factor[:, None])


def renaming(subject: Subject, seed: int) -> Int[np.ndarray, " n_variables"]:
    """For each letter the one whose name it takes: the letters allowed on both sides permuted, the others kept."""
    free = np.intersect1d(subject.split.allowed_variables(0), subject.split.allowed_variables(1))
    names = np.arange(subject.task.n_variables)
    names[free] = np.random.default_rng(seed).permutation(free)
    return names


def letters_renamed(subject: Subject, seed: int) -> Parameters:
    """Letters that the split treats alike exchange their embeddings."""
    embed = subject.parameters["embed.W_E"].clone()
    embed[subject.task.first_variable_token + renaming(subject, seed)] = subject.variable_embeddings()
    return edited(subject.parameters, W_E=embed)


def _heads(subject: Subject) -> dict[str, Tensor]:
    return {
        f"{name}{layer}": weight.double()
        for layer in (0, 1)
        for name, weight in zip(("W_Q", "W_K", "W_V", "W_O"), attention_weights(subject.parameters, layer), strict=True)
    }


def _mlp(subject: Subject) -> tuple[Float[Tensor, "d_model d_mlp"], Float[Tensor, "d_mlp d_model"]]:
    return tuple(subject.parameters[f"blocks.1.mlp.{name}"].double() for name in ("W_in", "W_out"))  # pyright: ignore


SYMMETRIES: Mapping[str, Symmetry] = {
    symmetry.name: symmetry
    for symmetry in (
        Symmetry("residual-rotated", "The residual stream in another orthonormal basis.", residual_rotated),
        Symmetry("qk-basis-changed", "Queries and keys of both heads in another basis.", qk_basis_changed),
        Symmetry("ov-basis-changed", "Values of both heads in another basis.", ov_basis_changed),
        Symmetry("neurons-permuted", "The MLP's neurons in another order.", neurons_permuted),
        Symmetry("neurons-rescaled", "Each neuron's inputs scaled up and its outputs down.", neurons_rescaled),
        Symmetry("letters-renamed", "Letters that the split treats alike under other names.", letters_renamed),
    )
}
