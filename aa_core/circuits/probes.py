"""Linear probes: what can be read off the residual stream, and where.

A probe is a ridge regression onto one-hot labels, in closed form. It is fitted on full prefixes of 2-variable
sequences and scored on other ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from aa_core.circuits.interventions import Stream, intervened, symbols
from aa_core.circuits.subject import Subject
from aa_core.statistics import Measurement, share
from aa_core.task.sampling import Kind, full_prefix_sequences

RIDGE = 1e-3  # penalty, as a fraction of the features' mean variance


class Streams(NamedTuple):
    """What the model computed on the sequences that probes are fitted on, and on those that they are scored on."""

    fitted: Stream
    scored: Stream


def probe_streams(subject: Subject) -> Streams:
    """Full prefixes of 2-variable sequences; the two sets come from different seeds."""
    fitted = full_prefix_sequences(subject.split, Kind.TWO, subject.data.probe, subject.data.seed + 1)
    return Streams(intervened(subject, subject.run(fitted)), intervened(subject, subject.full_prefix(Kind.TWO)))


def ridge_scores(
    features: Float[Tensor, "fitted d"], labels: Float[Tensor, "fitted classes"], others: Float[Tensor, "scored d"]
) -> Float[Tensor, "scored classes"]:
    """Scores of a ridge regression, with an unpenalised intercept, on features that it was not fitted on."""
    x = features.double()
    mean, label_mean = x.mean(0), labels.double().mean(0)
    x = x - mean
    gram = x.T @ x
    penalty = RIDGE * gram.diagonal().mean().clamp_min(torch.finfo(torch.float32).tiny)
    weights = torch.linalg.solve(gram + penalty * torch.eye(len(gram)), x.T @ (labels - label_mean))
    return (others.double() - mean) @ weights + label_mean


def _one_hot(labels: Int[np.ndarray, "n ..."], classes: int) -> Float[Tensor, "n classes"]:
    """1 at the label of each row, or at each of its k labels."""
    index = torch.from_numpy(labels.reshape(len(labels), -1))
    return torch.zeros(len(index), classes, dtype=torch.float64).scatter_(1, index, 1.0)


def _label_accuracy(
    features: tuple[Tensor, Tensor], labels: tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]], classes: int
) -> Measurement:
    """Share of rows whose largest score is that of their label."""
    scores = ridge_scores(features[0], _one_hot(labels[0], classes), features[1])
    return share(scores.argmax(1).numpy() == labels[1])


def _constant_and_variable(subject: Subject, stream: Stream) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Position of a random assigned constant of each sequence, and index of the variable that it is assigned to."""
    tokens = stream.sequences.tokens
    keys = np.random.default_rng(subject.data.seed).random((len(tokens), subject.task.prefix_length))
    at = np.where(tokens[:, : subject.task.prefix_length] < subject.task.modulus, keys, -1).argmax(1)
    return at, tokens[np.arange(len(at)), at - 1] - subject.task.first_variable_token


def variable_at_constant(subject: Subject, layer: int) -> Measurement:
    """How well the variable can be read at the position of the constant assigned to it.

    Args:
        subject: the model.
        layer: 0 to read `blocks.0.hook_resid_pre`, 1 to read `blocks.1.hook_resid_pre`.
    """
    vectors = symbols(subject)
    features, labels = [], []
    for stream in subject.once(probe_streams):
        at, variable = _constant_and_variable(subject, stream)
        rows = np.arange(len(at))
        if layer == 0:
            features.append(vectors.tokens[stream.sequences.tokens[rows, at]] + vectors.positions[at])
        else:
            features.append(stream.resid_pre1[rows, at])
        labels.append(variable)
    return _label_accuracy((features[0], features[1]), (labels[0], labels[1]), subject.task.n_variables)


PLACES: dict[str, Callable[[Stream], Tensor]] = {
    "blocks.1.hook_resid_pre": lambda stream: stream.resid_pre1[:, -1],
    "blocks.1.hook_resid_mid": lambda stream: stream.resid_mid1,
    "blocks.1.hook_resid_post": lambda stream: stream.resid_post1,
}


def _at(subject: Subject, place: str) -> tuple[Tensor, Tensor]:
    """The residual stream at `=` of the fitted and of the scored sequences, [n, d_model] each."""
    fitted, scored = (PLACES[place](stream) for stream in subject.once(probe_streams))
    return fitted, scored


def value_pair(subject: Subject, place: str) -> Measurement:
    """How often the two largest scores at `=` are those of the two operand values, in no order.

    Args:
        subject: the model.
        place: a key of `PLACES`.
    """
    streams = subject.once(probe_streams)
    fitted, scored = _at(subject, place)
    labels = _one_hot(streams.fitted.sequences.values, subject.task.modulus)
    best = ridge_scores(fitted, labels, scored).topk(2).indices.sort(1).values.numpy()
    return share((best == np.sort(streams.scored.sequences.values, axis=1)).all(1))


def answer(subject: Subject, place: str) -> Measurement:
    """How well the sum can be read at `=`.

    Args:
        subject: the model.
        place: a key of `PLACES`.
    """
    fitted, scored = subject.once(probe_streams)
    labels = fitted.sequences.answers, scored.sequences.answers
    return _label_accuracy(_at(subject, place), labels, subject.task.modulus)
