"""The addition circuit by itself: blocks.1's OV circuit on constants, then the MLP."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from aa_core.circuits.interventions import intervened
from aa_core.circuits.subject import Subject
from aa_core.model.parameters import attention_weights
from aa_core.statistics import Measurement, exact, share
from aa_core.task.sampling import Kind


def mlp_logits(subject: Subject, vectors: Float[Tensor, "n d_model"]) -> Float[Tensor, "n modulus"]:
    """`relu(vectors W_in) W_out W_U`: what the MLP alone says to vectors, without the skip past it."""
    return (vectors @ subject.tables.w_in).relu() @ subject.tables.w_out_u


def _table_logits(subject: Subject) -> Float[Tensor, "modulus modulus modulus"]:
    """The MLP's logits for `OV(n) + OV(m)`, with the constants' bare embeddings through blocks.1's OV circuit.

    The scale does not matter to the largest logit, since nothing has a bias: attention of one half would do as well.
    """
    _, _, v1, o1 = attention_weights(subject.parameters, 1)
    written = subject.constant_embeddings() @ v1 @ o1
    m = len(written)
    return mlp_logits(subject, (written[:, None] + written).flatten(0, 1)).view(m, m, m)


def _sums(modulus: int) -> Tensor:
    n = torch.arange(modulus)
    return (n[:, None] + n) % modulus


def table_accuracy(subject: Subject, *, held_out: bool = False) -> Measurement:
    """Share of the pairs n, m for which the circuit's largest logit is that of n + m.

    Args:
        subject: the model.
        held_out: of the held-out pairs alone; nan where there are none.
    """
    correct = (subject.once(_table_logits).argmax(-1) == _sums(subject.task.modulus)).numpy()
    return share(correct[~subject.split.seen] if held_out else correct.ravel(), exhaustive=True)


def table_margin(subject: Subject) -> Measurement:
    """Mean over all pairs of the right logit less the largest wrong one, in standard deviations of all logits."""
    logits = subject.once(_table_logits)
    right = _sums(len(logits))[..., None]
    margin = logits.gather(-1, right) - logits.scatter(-1, right, -torch.inf).amax(-1, keepdim=True)
    return exact(float(margin.mean() / logits.std().clamp_min(torch.finfo(logits.dtype).tiny)), len(logits) ** 2)


def own_sum_with_donor(subject: Subject) -> Measurement:
    """Share of 0-var sequences that keep their answer when blocks.0 writes at `=` what it does in another one.

    The donor is the next sequence, with other operands and another prefix. A model that sends an operand's value to
    `=` through blocks.0 takes the donor's.
    """

    def from_donor(out: Tensor) -> Tensor:
        return torch.cat([out[:, :-1], out[:, -1:].roll(1, 0)], dim=1)

    return share(intervened(subject, subject.full_prefix(Kind.ZERO), attn_out0=from_donor).correct.numpy())


def attention_output_accuracy(subject: Subject, kind: Kind) -> Measurement:
    """Share of right answers when the MLP gets `blocks.1.hook_attn_out` alone, and its output alone is unembedded."""
    run = subject.full_prefix(kind)
    predictions = mlp_logits(subject, intervened(subject, run).attn_out1).argmax(-1)
    return share(np.equal(predictions.numpy(), run.sequences.answers))
