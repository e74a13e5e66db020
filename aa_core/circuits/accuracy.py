"""Accuracies, as counts."""

from __future__ import annotations

import numpy as np

from aa_core.circuits.subject import Subject, zero_variable_sequences
from aa_core.statistics import Measurement, exact, share
from aa_core.task.sampling import Kind
from aa_core.task.sequences import NO_VARIABLE


def full_prefix_accuracy(subject: Subject, kind: Kind) -> Measurement:
    """Share of right answers on training-law sequences with the most assignments and distinct values."""
    return share(subject.full_prefix(kind).correct)


def pool_accuracy(subject: Subject, name: str, kind: Kind | None = None) -> Measurement:
    """Share of right answers on an evaluation pool, or on its sequences of one kind (1L or 1R).

    nan where the split has no such sequence.
    """
    run = subject.pool(name)
    if run is None:
        return exact(float("nan"), note="the split has no such sequence")
    correct = run.correct
    if kind is not None:
        correct = correct[(run.sequences.variables[:, 0 if kind is Kind.LEFT else 1]) != NO_VARIABLE]
    return share(correct)


def seen_zero_variable(subject: Subject) -> Measurement:
    """Share of right answers over *every* training pair, each once in a random prefix."""
    pairs = subject.split.seen_pairs
    return share(subject.run(zero_variable_sequences(subject.task, pairs, subject.data.seed)).correct, exhaustive=True)


def held_out_zero_variable(subject: Subject, part: str = "all") -> Measurement:
    """Share of right answers over *every* held-out pair, each once in a random prefix: no error from sampling pairs.

    Args:
        subject: the model.
        part: `all` pairs, the `diagonal` n + n, the pairs `off-diagonal`, or those held out in `both-orders`, so that
            n + m is not to be had from m + n.
    """
    pairs = subject.split.held_out_pairs
    if not len(pairs):
        return exact(float("nan"), note="the split holds out no pair")
    correct = subject.run(zero_variable_sequences(subject.task, pairs, subject.data.seed)).correct
    diagonal = pairs[:, 0] == pairs[:, 1]
    chosen = {
        "all": np.ones_like(diagonal),
        "diagonal": diagonal,
        "off-diagonal": ~diagonal,
        "both-orders": ~subject.split.seen[pairs[:, 1], pairs[:, 0]],
    }[part]
    wrong = pairs[chosen & ~correct]
    note = "wrong: " + ", ".join(f"{a}+{b}" for a, b in wrong[:8]) + (", ..." if len(wrong) > 8 else "")
    return share(correct[chosen], exhaustive=True, note=note if len(wrong) else "")
