"""Attention patterns: the previous-token head of blocks.0 and what `=` looks at in both layers."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from aa_core.circuits.subject import Run, Subject
from aa_core.statistics import Measurement, exact, mean, share
from aa_core.task.config import TaskConfig
from aa_core.task.sampling import POOLS, Kind


def assigned_constants(task: TaskConfig, run: Run) -> Bool[np.ndarray, "n prefix"]:
    """True at the positions of the prefix that hold a constant."""
    return run.sequences.tokens[:, : task.prefix_length] < task.modulus


def previous_token_argmax(subject: Subject) -> Measurement:
    """Share of assigned constants whose blocks.0 row is largest at the position before (the variable)."""
    hits = []
    for run in subject.full_prefixes():
        largest = run.activations.pattern0.argmax(-1).numpy()[:, : subject.task.prefix_length]
        previous = np.arange(subject.task.prefix_length) - 1
        hits.append((largest == previous)[assigned_constants(subject.task, run)])
    return share(np.concatenate(hits))


def _previous_weight(pattern: Tensor, prefix: int) -> Float[np.ndarray, "n prefix"]:
    """Weight of each prefix position on the one before it; 0 at the first."""
    weight = pattern.diagonal(-1, dim1=1, dim2=2).numpy()
    return np.pad(weight, ((0, 0), (1, 0)))[:, :prefix]


def previous_token_weight(subject: Subject) -> Measurement:
    """Mean blocks.0 weight of assigned constants on the position before, averaged within each sequence first."""
    values = []
    for run in subject.full_prefixes():
        constants = assigned_constants(subject.task, run)
        weight = _previous_weight(run.activations.pattern0, subject.task.prefix_length)
        values.append((weight * constants).sum(1) / constants.sum(1))
    return mean(np.concatenate(values))


def previous_token_weight_by_variable(subject: Subject) -> Measurement:
    """The smallest, over variables, of the mean weight of the constants assigned to it."""
    totals = np.zeros((2, subject.task.n_variables))
    for run in subject.full_prefixes():
        at = np.nonzero(assigned_constants(subject.task, run))
        weight = _previous_weight(run.activations.pattern0, subject.task.prefix_length)[at]
        variable = run.sequences.tokens[at[0], at[1] - 1] - subject.task.first_variable_token
        totals[0] += np.bincount(variable, weight, subject.task.n_variables)
        totals[1] += np.bincount(variable, minlength=subject.task.n_variables)
    means = totals[0] / np.maximum(totals[1], 1)
    return exact(means.min(), int(totals[1].sum()), note=f"least for {subject.task.variables[means.argmin()]}")


def previous_token_weight_by_position(subject: Subject) -> Measurement:
    """The smallest, over positions 1 and later, of the mean weight of constants there, on the evaluation pools."""
    totals = np.zeros((2, subject.task.prefix_length))
    for name in POOLS:
        if (run := subject.pool(name)) is not None:
            constants = assigned_constants(subject.task, run)
            weight = _previous_weight(run.activations.pattern0, subject.task.prefix_length)
            totals += np.stack([(weight * constants).sum(0), constants.sum(0)])
    means = (totals[0] / np.maximum(totals[1], 1))[1:]
    return exact(means.min(), int(totals[1].sum()), note=f"least at position {means.argmin() + 1}")


def equals_operand_weights(subject: Subject, layer: int, kind: Kind) -> Float[np.ndarray, "n 2"]:
    """Weight of `=` on the two operands (blocks.0) or on the two constants that the answer sums (blocks.1)."""
    run = subject.full_prefix(kind)
    if layer == 0:
        at = np.broadcast_to([subject.task.left_position, subject.task.right_position], run.sequences.sources.shape)
        row = run.activations.pattern0[:, -1].numpy()
    else:
        at = run.sequences.sources
        row = run.activations.pattern1.numpy()
    return np.take_along_axis(row, at, axis=1)


def equals_top_two(subject: Subject, layer: int, kind: Kind) -> Measurement:
    """Share of sequences in which those two places are the two largest of the row of `=`."""
    run = subject.full_prefix(kind)
    row = (run.activations.pattern0[:, -1] if layer == 0 else run.activations.pattern1).numpy()
    smaller = equals_operand_weights(subject, layer, kind).min(1)
    return share((row >= smaller[:, None]).sum(1) == 2)


def equals_smaller_weight(subject: Subject, layer: int, kind: Kind) -> Measurement:
    """Mean of the smaller of the two weights."""
    return mean(equals_operand_weights(subject, layer, kind).min(1))
