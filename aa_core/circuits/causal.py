"""Exchanges along the circuit: what blocks.0 writes at constants, what `=` asks for, and what it fetches.

Each exchange is made on full prefixes of distinct values, and comes with the answer that it should bring about, its
*counterfactual*. One queried variable x is exchanged with an assigned variable y that the problem does not ask for; in
2-variable sequences x stands left or right at random. y is a variable that training puts on that side, too, if one is
assigned: whether the model answers for the others is a question of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from aa_core.circuits.interventions import Stream, intervened, symbols
from aa_core.circuits.subject import Run, Subject
from aa_core.model.symbol_space import Activations
from aa_core.statistics import Measurement, share
from aa_core.task.config import TaskConfig
from aa_core.task.sampling import Kind
from aa_core.task.sequences import Sequences


def causal_run(subject: Subject, kind: Kind) -> Run:
    """The first full prefixes of a kind."""
    run, rows = subject.full_prefix(kind), slice(subject.data.causal)
    return Run(run.sequences[rows], Activations(*(tensor[rows] for tensor in run.activations)))


def constant_positions(task: TaskConfig, sequences: Sequences) -> Int[np.ndarray, "n assignments"]:
    """Positions of the assigned constants, in order; all sequences must have the same number of them."""
    return np.nonzero(sequences.tokens[:, : task.prefix_length] < task.modulus)[1].reshape(len(sequences), -1)


class Exchange(NamedTuple):
    """Which variables are exchanged in each sequence.

    Attributes:
        side: where x stands, 0 left or 1 right.
        x_at: position of x's constant.
        y_at: position of y's constant.
        z_at: position of the constant of one more variable that is not asked for.
        counterfactual: the answer with y's value in place of x's.
    """

    side: Int[np.ndarray, " n"]
    x_at: Int[np.ndarray, " n"]
    y_at: Int[np.ndarray, " n"]
    z_at: Int[np.ndarray, " n"]
    counterfactual: Int[np.ndarray, " n"]


def exchange(subject: Subject, kind: Kind, sequences: Sequences) -> Exchange:
    """Draw x, y and z; the draw depends on the seed of the data and on the kind."""
    task, rows = subject.task, np.arange(len(sequences))
    rng = np.random.default_rng([subject.data.seed, list(Kind).index(kind)])
    side = {Kind.LEFT: 0 * rows, Kind.RIGHT: 0 * rows + 1, Kind.TWO: rng.integers(0, 2, len(rows))}[kind]
    x_at = sequences.sources[rows, side]
    at = constant_positions(task, sequences)
    never = np.zeros((2, task.d_vocab), dtype=bool)
    for each in (0, 1):
        never[each, task.first_variable_token + subject.split.restricted_variables(each)] = True
    keys = rng.random(at.shape) + never[side[:, None], sequences.tokens[rows[:, None], at - 1]]
    keys[(at[:, :, None] == sequences.sources[:, None]).any(-1)] = 2  # constants that are asked for come last
    y_at, z_at = np.take_along_axis(at, keys.argsort(1)[:, :2], 1).T
    change = sequences.tokens[rows, y_at] - sequences.tokens[rows, x_at]
    return Exchange(side, x_at, y_at, z_at, (sequences.answers + change) % task.modulus)


def _agreement(stream: Stream, answers: Int[np.ndarray, " n"]) -> Measurement:
    return share(stream.predictions.numpy() == answers)


def _swapped(a: Int[np.ndarray, " n"], b: Int[np.ndarray, " n"]) -> Callable[[Tensor], Tensor]:
    """Edit that swaps two positions of each sequence."""

    def swap(out: Tensor) -> Tensor:
        rows, out = np.arange(len(out)), out.clone()
        out[rows, a], out[rows, b] = out[rows, b], out[rows, a]
        return out

    return swap


def binding_swapped(subject: Subject, kind: Kind, *, counterfactual: bool = True) -> Measurement:
    """Share of counterfactual answers with `blocks.0.hook_attn_out` swapped between x's and y's constants.

    Args:
        subject: the model.
        kind: a kind with variables.
        counterfactual: False for the share of unchanged answers.
    """
    run = causal_run(subject, kind)
    drawn = exchange(subject, kind, run.sequences)
    stream = intervened(subject, run, attn_out0=_swapped(drawn.x_at, drawn.y_at))
    return _agreement(stream, drawn.counterfactual if counterfactual else run.sequences.answers)


def unqueried_binding_swapped(subject: Subject, kind: Kind) -> Measurement:
    """The control: share of right answers with the swap between two constants that are not asked for."""
    run = causal_run(subject, kind)
    drawn = exchange(subject, kind, run.sequences)
    return _agreement(intervened(subject, run, attn_out0=_swapped(drawn.y_at, drawn.z_at)), run.sequences.answers)


def _variable_change(subject: Subject, run: Run, drawn: Exchange) -> Float[Tensor, "2 n d_model"]:
    """What the swap of the variables alone adds at x's constant and at y's: weight times the difference carried."""
    rows = np.arange(len(run.sequences))
    carried = symbols(subject).carried_tokens[run.sequences.tokens]
    x, y = carried[rows, drawn.x_at - 1], carried[rows, drawn.y_at - 1]
    at_x, at_y = (run.activations.pattern0[rows, at, at - 1][:, None] for at in (drawn.x_at, drawn.y_at))
    return torch.stack([at_x * (y - x), at_y * (x - y)])


def _added(drawn: Exchange, change: Float[Tensor, "2 n d_model"]) -> Callable[[Tensor], Tensor]:
    """Edit that adds a vector at x's constant and one at y's."""

    def add(out: Tensor) -> Tensor:
        rows, out = np.arange(len(out)), out.clone()
        out[rows, drawn.x_at] += change[0]
        out[rows, drawn.y_at] += change[1]
        return out

    return add


def variable_swapped(subject: Subject, kind: Kind) -> Measurement:
    """Share of counterfactual answers with only the variables' part of what blocks.0 writes swapped."""
    run = causal_run(subject, kind)
    drawn = exchange(subject, kind, run.sequences)
    change = _variable_change(subject, run, drawn)
    return _agreement(intervened(subject, run, attn_out0=_added(drawn, change)), drawn.counterfactual)


def _random_like(vectors: Float[Tensor, "*n d_model"], seed: int) -> Float[Tensor, "*n d_model"]:
    """Vectors in random directions with the norms of the given ones."""
    noise = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(seed))
    return noise * vectors.norm(dim=-1, keepdim=True) / noise.norm(dim=-1, keepdim=True)


def random_direction_added(subject: Subject, kind: Kind) -> Measurement:
    """The control: share of counterfactual answers with random vectors of the same norm added in the same places."""
    run = causal_run(subject, kind)
    drawn = exchange(subject, kind, run.sequences)
    noise = _random_like(_variable_change(subject, run, drawn), subject.data.seed)
    return _agreement(intervened(subject, run, attn_out0=_added(drawn, noise)), drawn.counterfactual)


def query_patched(subject: Subject, kind: Kind, *, equals_alone: bool = False) -> Measurement:
    """Share of counterfactual answers with blocks.0's output at the end taken from the problem that asks for y.

    Args:
        subject: the model.
        kind: a kind with variables.
        equals_alone: patch `=` alone, not the operands too. Not enough in 1L, where `=` finds the right operand, a
            constant, by the variable before it, too.
    """
    run = causal_run(subject, kind)
    drawn = exchange(subject, kind, run.sequences)
    task, rows = subject.task, np.arange(len(run.sequences))
    tokens = run.sequences.tokens.copy()
    tokens[rows, task.left_position + drawn.side] = tokens[rows, drawn.y_at - 1]
    source = intervened(subject, subject.run(replace(run.sequences, tokens=tokens))).attn_out0
    start = task.equals_position if equals_alone else task.left_position

    def patch(out: Tensor) -> Tensor:
        return torch.cat([out[:, :start], source[:, start:]], dim=1)

    return _agreement(intervened(subject, run, attn_out0=patch), drawn.counterfactual)


def value_replaced(subject: Subject, kind: Kind) -> Measurement:
    """Share of counterfactual answers with y's value in place of x's for blocks.1's OV circuit alone.

    Scores, and what blocks.0 writes, stay those of the unchanged sequence.
    """
    run = causal_run(subject, kind)
    drawn = exchange(subject, kind, run.sequences)

    def replace_value(stream: Tensor) -> Tensor:
        rows, stream = np.arange(len(stream)), stream.clone()
        tokens = subject.parameters["embed.W_E"][run.sequences.tokens]
        stream[rows, drawn.x_at] += tokens[rows, drawn.y_at] - tokens[rows, drawn.x_at]
        return stream

    return _agreement(intervened(subject, run, v_input1=replace_value), drawn.counterfactual)
