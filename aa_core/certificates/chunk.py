"""The verdict on some sequences of a domain: which answers are wrong, and the least margin.

The *margin* of a sequence is the logit of the right answer minus the largest other one; the answer is wrong where it
is not above 0. A first pass in single precision finds the sequences whose margin rounding could decide, and those
near the least; a second one in double precision decides. So the verdict does not depend on the machine.
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

BATCH = 512  # sequences a forward pass; the fastest of 256 to 2048
ROUNDING = 1e-4  # more than single precision can err, as a share of the largest logit; 4e-7 was measured
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
    """A model's tables in single and in double precision."""

    single: Tables
    double: Tables


class Judged(NamedTuple):
    """Margins and answers of sequences, and which of them are exact: computed in double precision."""

    margins: Float[Tensor, " n"]
    answers: Int[Tensor, " n"]
    exact: Bool[Tensor, " n"]


@torch.no_grad()
def model_tables(task: TaskConfig, parameters: Parameters) -> Model:
    """Prepare a model for `judge`."""
    return Model(
        symbol_tables(task, {name: weight.float() for name, weight in parameters.items()}),
        symbol_tables(task, {name: weight.double() for name, weight in parameters.items()}),
    )


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
    """Margins, float64: exact where they are near 0 or near the least, else of single precision.

    Raises:
        InputError: a logit is not finite.
    """
    margins, given, scale = _margins(model.single, tokens, answers)
    tolerance = ROUNDING * scale
    exact = (margins <= tolerance) | (margins - tolerance <= (margins + tolerance).min())
    margins[exact], given[exact], _ = _margins(model.double, tokens[exact], answers[exact])
    return Judged(margins, given, exact)


def rounded(margin: float | Tensor) -> float:
    """A margin as it is kept."""
    return round(float(margin), DIGITS) + 0.0  # no -0.0


def _margins(tables: Tables, tokens: Tensor, answers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Margins, answers given, and the size of the largest logit."""
    parts = [_margins_of_batch(tables, *batch) for batch in zip(tokens.split(BATCH), answers.split(BATCH), strict=True)]
    margins, given, scale = (torch.cat(part) for part in zip(*parts, strict=True))
    return margins, given, scale


def _margins_of_batch(tables: Tables, tokens: Tensor, answers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    logits = forward(tables, tokens).logits
    scale = logits.abs().amax(dim=1)
    if not scale.isfinite().all():
        raise InputError("a logit is not finite: nothing can be certified of such a model")
    given = logits.argmax(dim=1)
    right = logits.gather(1, answers[:, None])
    best_other = logits.scatter(1, answers[:, None], -torch.inf).amax(dim=1)
    return (right[:, 0] - best_other).double(), given, scale.double()


def _counts(axis: Axis, wrong: Bool[np.ndarray, " n"]) -> dict[str, Count]:
    n = len(axis.labels)
    sizes, errors = np.bincount(axis.codes, minlength=n), np.bincount(axis.codes[wrong], minlength=n)
    return {
        label: Count(int(size), int(error))
        for label, size, error in zip(axis.labels, sizes, errors, strict=True)
        if size
    }
