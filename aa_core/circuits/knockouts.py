"""Knock-outs of single edges of the circuit, each in three ways.

An edge carries a vector, weighted by the pattern, from a key to a query. It is cut in one of these ways:

* zero: its weight is set to 0 and the row scaled back to the sum 1;
* resample: it carries the vector of another sequence, from a key in the same role;
* mean: it carries the mean vector of that role over all sequences.

The last two leave all weights as they are, so what falls is not owed to the other edges' larger ones.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from aa_core.circuits.causal import causal_run, constant_positions
from aa_core.circuits.interventions import intervened, symbols, without_edges
from aa_core.circuits.subject import Run, Subject
from aa_core.statistics import Measurement, share
from aa_core.task.config import TaskConfig
from aa_core.task.sampling import Kind
from aa_core.task.sequences import Sequences


class Ablation(StrEnum):
    """How an edge is cut."""

    ZERO = "zero"
    RESAMPLE = "resample"
    MEAN = "mean"


class Edge(StrEnum):
    """Edges of the circuit; the first four are in blocks.0."""

    CONSTANT_TO_VARIABLE = "constant-to-variable"
    EQUALS_TO_OPERANDS = "equals-to-operands"
    EQUALS_TO_LEFT = "equals-to-left"
    EQUALS_TO_RIGHT = "equals-to-right"
    EQUALS_TO_VALUES = "equals-to-values"


class Edges(NamedTuple):
    """Ends of the edges that are cut in each sequence.

    Attributes:
        layer: of the pattern that they belong to.
        queries: positions that attend.
        keys: positions that are attended to.
    """

    layer: int
    queries: Int[np.ndarray, "n edges"]
    keys: Int[np.ndarray, "n edges"]


def edges_of(task: TaskConfig, sequences: Sequences, edge: Edge) -> Edges:
    """Where an edge is: every assigned constant to the variable before it, or `=` to what it attends to."""
    if edge is Edge.CONSTANT_TO_VARIABLE:
        at = constant_positions(task, sequences)
        return Edges(0, at, at - 1)
    if edge is Edge.EQUALS_TO_VALUES:
        return Edges(1, np.full_like(sequences.sources, task.equals_position), sequences.sources)
    operands = {
        Edge.EQUALS_TO_OPERANDS: [task.left_position, task.right_position],
        Edge.EQUALS_TO_LEFT: [task.left_position],
        Edge.EQUALS_TO_RIGHT: [task.right_position],
    }[edge]
    keys = np.tile(operands, (len(sequences), 1))
    return Edges(0, np.full_like(keys, task.equals_position), keys)


def _replacement(vectors: Float[Tensor, "n edges d_model"], ablation: Ablation) -> Float[Tensor, "n edges d_model"]:
    """What edges carry instead: the vectors of the sequence before, or their mean over sequences."""
    if ablation is Ablation.RESAMPLE:
        return vectors.roll(1, 0)
    return vectors.mean(0, keepdim=True).expand_as(vectors)


def cut_accuracy(subject: Subject, kind: Kind, edge: Edge, ablation: Ablation) -> Measurement:
    """Share of right answers with an edge cut."""
    return subject.once(_cut_accuracy, kind=kind, edge=edge, ablation=ablation)


def _cut_accuracy(subject: Subject, kind: Kind, edge: Edge, ablation: Ablation) -> Measurement:
    run = causal_run(subject, kind)
    edges = edges_of(subject.task, run.sequences, edge)
    cut = _cut0 if edges.layer == 0 else _cut1
    return share(cut(subject, run, edges, ablation).numpy())


def _cut0(subject: Subject, run: Run, edges: Edges, ablation: Ablation) -> Tensor:
    rows = np.arange(len(run.sequences))[:, None]
    pattern = run.activations.pattern0
    if ablation is Ablation.ZERO:
        mask = torch.zeros(pattern.shape, dtype=torch.bool)
        mask[rows, edges.queries, edges.keys] = True
        return intervened(subject, run, pattern0=without_edges(pattern, mask)).correct
    x = symbols(subject)
    carried = x.carried_tokens[run.sequences.tokens[rows, edges.keys]] + x.carried_positions[edges.keys]
    change = pattern[rows, edges.queries, edges.keys][..., None] * (_replacement(carried, ablation) - carried)

    def add(out: Tensor) -> Tensor:
        # Accumulates, since one query can have several of the edges.
        return out.index_put((torch.from_numpy(rows), torch.from_numpy(edges.queries)), change, accumulate=True)

    return intervened(subject, run, attn_out0=add).correct


def _cut1(subject: Subject, run: Run, edges: Edges, ablation: Ablation) -> Tensor:
    rows = np.arange(len(run.sequences))[:, None]
    if ablation is Ablation.ZERO:
        mask = torch.zeros(run.activations.pattern1.shape, dtype=torch.bool)
        mask[rows, edges.keys] = True
        return intervened(subject, run, pattern1=lambda own: without_edges(own, mask)).correct

    def replace_values(stream: Tensor) -> Tensor:
        stream = stream.clone()
        stream[rows, edges.keys] = _replacement(stream[rows, edges.keys], ablation)
        return stream

    return intervened(subject, run, v_input1=replace_values).correct
