"""The circuit by itself: what the paper describes is kept, and everything else comes from other sequences.

    query of `=`   its embeddings and what blocks.0 carries from the two operands; the rest of what blocks.0 writes is
                   another sequence's
    keys           of assigned constants: another constant, another place, and the variable that blocks.0 carries; the
                   rest of what it writes is another sequence's. Of operands: as they are. Of all others: their
                   embeddings, and what blocks.0 writes in another sequence
    values         the embedding of the token alone
    MLP            reads the output of blocks.1's attention alone
    answer         read from the output of the MLP alone

Keys of operands stay whole since the bare description, which keeps only their embeddings, is not enough in 1-variable
sequences (.85 of 1L and .65 of 1R in the paper's final model): `=` finds a constant operand by its position and by what
blocks.0 writes there.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import torch
from torch import Tensor

from aa_core.circuits.causal import causal_run, constant_positions
from aa_core.circuits.interventions import intervened, symbols
from aa_core.circuits.subject import Run, Subject
from aa_core.statistics import Measurement, share
from aa_core.task.sampling import Kind


class Part(StrEnum):
    """Parts of the circuit that can be left out: what they carry is then another sequence's, too."""

    VARIABLE_IN_KEYS = "variable-in-keys"
    OPERANDS_IN_QUERY = "operands-in-query"
    VALUES = "values"


def circuit_accuracy(subject: Subject, kind: Kind, without: Part | None = None) -> Measurement:
    """Share of right answers of the circuit by itself, or of what is left without one part."""
    return subject.once(_circuit_accuracy, kind=kind, without=without)


def _circuit_accuracy(subject: Subject, kind: Kind, without: Part | None) -> Measurement:
    run = causal_run(subject, kind)
    query, keys = _query_and_keys(subject, run, without)
    values = subject.parameters["embed.W_E"][torch.from_numpy(run.sequences.tokens)]
    if without is Part.VALUES:
        rows = np.arange(len(values))[:, None]
        values[rows, run.sequences.sources] = values[rows, run.sequences.sources].roll(1, 0)
    fed = intervened(subject, run, q_input1=query, k_input1=keys, v_input1=values).attn_out1
    alone = (fed @ subject.tables.w_in).relu() @ subject.tables.w_out_u
    return share(alone.argmax(-1).numpy() == run.sequences.answers)


def _query_and_keys(subject: Subject, run: Run, without: Part | None) -> tuple[Tensor, Tensor]:
    x, task = symbols(subject), subject.task
    tokens = torch.from_numpy(run.sequences.tokens)
    pattern, out = run.activations.pattern0, intervened(subject, run).attn_out0
    generator = torch.Generator().manual_seed(subject.data.seed)

    operands = slice(task.left_position, task.right_position + 1)
    carried = x.carried_tokens[tokens[:, operands]] + x.carried_positions[operands]
    to_equals = (pattern[:, -1:, operands] @ carried)[:, 0]
    rest = (out[:, -1] - to_equals).roll(1, 0)
    if without is Part.OPERANDS_IN_QUERY:
        to_equals = to_equals.roll(1, 0)
    query = x.tokens[tokens[:, -1]] + x.positions[-1] + to_equals + rest

    keys = x.tokens[tokens] + x.positions + out.roll(1, 0)
    keys[:, operands] = x.tokens[tokens[:, operands]] + x.positions[operands] + out[:, operands]
    rows = torch.arange(len(tokens))[:, None]
    at = torch.from_numpy(constant_positions(task, run.sequences))
    variable = pattern[rows, at, at - 1][..., None] * x.carried_tokens[tokens[rows, at - 1]]
    other = (out[rows, at] - variable).roll(1, 0)
    if without is Part.VARIABLE_IN_KEYS:
        variable = variable.roll(1, 0)
    constant = torch.randint(task.modulus, at.shape, generator=generator)
    position = torch.randint(task.prefix_length, at.shape, generator=generator)
    keys[rows, at] = x.tokens[constant] + x.positions[position] + variable + other
    return query, keys
