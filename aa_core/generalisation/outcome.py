"""What a model does on every pair of operand values of a layout."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aa_core.circuits.subject import Subject
from aa_core.generalisation.layout import Layout
from aa_core.model.symbol_space import forward
from aa_core.task.sequences import Sequences

CHUNK = 512  # sequences a forward pass; faster than more where only the logits are kept


class Outcome(NamedTuple):
    """Answers to sequences.

    Attributes:
        answers: the model's answers.
        margins: logit of the right answer minus that of the best other one.
    """

    answers: Int[np.ndarray, " *sequences"]
    margins: Float[np.ndarray, " *sequences"]

    @property
    def correct(self) -> Bool[np.ndarray, " *sequences"]:
        """Where the right answer has the highest logit, alone."""
        return self.margins > 0


def answered(subject: Subject, sequences: Sequences) -> Outcome:
    """The outcome of any sequences."""
    tokens = torch.from_numpy(sequences.tokens)
    logits: Tensor = torch.cat([forward(subject.tables, chunk).logits for chunk in tokens.split(CHUNK)])
    rows, right = torch.arange(len(logits)), torch.from_numpy(sequences.answers)
    others = logits.clone()
    others[rows, right] = -torch.inf
    margins = logits[rows, right] - others.amax(1)
    return Outcome(logits.argmax(1).numpy(), margins.numpy())


def outcome(subject: Subject, layout: Layout) -> Outcome:
    """The outcome of all pairs of operand values, as [modulus, modulus]; computed once for each layout."""
    return subject.once(_outcome, layout=layout)


def _outcome(subject: Subject, layout: Layout) -> Outcome:
    m = subject.task.modulus
    pairs = np.argwhere(np.ones((m, m), dtype=bool))
    flat = answered(subject, layout.sequences(subject.task, pairs, subject.data.seed))
    return Outcome(*(part.reshape(m, m) for part in flat))
