"""The verdict on some sequences of a domain: which answers are wrong, and the least margin.

The *margin* of a sequence is the logit of the right answer minus the largest other one; the answer is wrong where it
is not above 0. Every margin is computed in double precision from the single-precision weights, none is screened in
single precision first: a sum errs in proportion to the sizes of its terms, by at most c 2^-53 times their sum after c
operations (c 2^-24 in single precision), and terms of any size may cancel, so the logits do not tell the error. The
fixture's margins are right to 1e-13, and to 1e-8 where terms of 1e7 are made to cancel (measured in extended
precision), below the digits that are kept. It is no proof against a model made so that terms 10^12 times its logits
cancel: of such a model the verdict is that of this arithmetic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aa_core.certificates.domain import Axis, Domain
from aa_core.certificates.exposure import Exposure, sequence_axes
from aa_core.errors import InputError
from aa_core.model.parameters import Parameters
from aa_core.model.symbol_space import Tables, forward, symbol_tables
from aa_core.task.config import TaskConfig

BATCH = 512  # sequences a forward pass; the fastest of 64 to 1024
DIGITS = 6  # decimals of a margin that are kept


@dataclass(frozen=True)
class Failure:
    """A sequence that is answered wrong.

    Attributes:
        index: its number in the domain.
        answer: what the model answers.
        margin: in logits, at most 0.
    """

    index: int
    answer: int
    margin: float


@dataclass(frozen=True)
class Count:
    """Sequences with a label, and how many of them are answered wrong."""

    size: int
    errors: int


@dataclass(frozen=True)
class Chunk:
    """The verdict on consecutive sequences of a domain.

    Attributes:
        start: index of the first.
        stop: index after the last.
        sha256: of the tokens in order, one byte each (two where the vocabulary needs it, little-endian).
        errors: how many are answered wrong.
        failures: the first of those, as many as were asked for.
        least_margin: in logits.
        least_index: index of the first sequence with it.
        counts: by division and label, labels that occur.
    """

    start: int
    stop: int
    sha256: str
    errors: int
    failures: tuple[Failure, ...]
    least_margin: float
    least_index: int
    counts: Mapping[str, Mapping[str, Count]]


class Model(NamedTuple):
    """A model's tables in double precision, and what to call it in messages."""

    tables: Tables
    source: str


class Judged(NamedTuple):
    """Margins, in logits, and answers of sequences."""

    margins: Float[Tensor, " n"]
    answers: Int[Tensor, " n"]


@torch.no_grad()
def model_of(task: TaskConfig, parameters: Parameters, source: str) -> Model:
    """Prepare a model for `judge`."""
    return Model(symbol_tables(task, {name: weight.double() for name, weight in parameters.items()}), source)


def chunk_of(domain: Domain, model: Model, exposure: Exposure, start: int, stop: int, limit: int) -> Chunk:
    """Judge the sequences `start .. stop-1` of a domain, and list at most `limit` failures.

    Raises:
        InputError: a logit is not finite.
    """
    indices = np.arange(start, stop)
    sequences = domain.sequences(indices)
    judged = judge(model, torch.from_numpy(sequences.tokens), torch.from_numpy(sequences.answers))
    wrong = ~(judged.margins > 0).numpy()
    least = int(judged.margins.argmin())
    failures = tuple(
        Failure(start + row, int(judged.answers[row]), rounded(judged.margins[row]))
        for row in np.flatnonzero(wrong)[:limit].tolist()
    )
    token = "<u1" if domain.task.d_vocab <= 256 else "<u2"
    axes = {**sequence_axes(domain.task, sequences, exposure), **domain.axes(indices)}
    return Chunk(
        start=start,
        stop=stop,
        sha256=hashlib.sha256(sequences.tokens.astype(token).tobytes()).hexdigest(),
        errors=int(wrong.sum()),
        failures=failures,
        least_margin=rounded(judged.margins[least]),
        least_index=start + least,
        counts={name: _counts(axis, wrong) for name, axis in axes.items()},
    )


def judge(model: Model, tokens: Int[Tensor, "n n_ctx"], answers: Int[Tensor, " n"]) -> Judged:
    """Margins and answers in double precision.

    Raises:
        InputError: a logit is not finite.
    """
    batches = zip(tokens.split(BATCH), answers.split(BATCH), strict=True)
    margins, given = zip(*(_judge_batch(model, *batch) for batch in batches), strict=True)
    return Judged(torch.cat(margins), torch.cat(given))


def rounded(margin: float | Tensor) -> float:
    """A margin as it is kept."""
    return round(float(margin), DIGITS) + 0.0  # no -0.0


def _judge_batch(model: Model, tokens: Tensor, answers: Tensor) -> Judged:
    logits = forward(model.tables, tokens).logits
    if not logits.isfinite().all():
        raise InputError(
            f"{model.source}: a logit of this model is not finite, so nothing can be certified of it; "
            "name another checkpoint with --checkpoint"
        )
    right = logits.gather(1, answers[:, None])
    best_other = logits.scatter(1, answers[:, None], -torch.inf).amax(dim=1)
    return Judged(right[:, 0] - best_other, logits.argmax(dim=1))


def _counts(axis: Axis, wrong: Bool[np.ndarray, " n"]) -> dict[str, Count]:
    n = len(axis.labels)
    sizes, errors = np.bincount(axis.codes, minlength=n), np.bincount(axis.codes[wrong], minlength=n)
    return {
        label: Count(int(size), int(error))
        for label, size, error in zip(axis.labels, sizes, errors, strict=True)
        if size
    }
