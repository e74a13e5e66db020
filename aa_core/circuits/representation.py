"""Whether sequences with the same operand values reach the MLP as the same vector, whatever their kind."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from aa_core.circuits.subject import DataConfig, Subject
from aa_core.statistics import Measurement, NotApplicable, mean, share
from aa_core.task.sampling import KINDS, Kind
from aa_core.task.sequences import Sequences, draw_sequences
from aa_core.task.split import Split
from aa_core.task.training_data import draw_variables

TWIN = "twin"


def distinct_pairs(split: Split, n: int, seed: int) -> np.ndarray:
    """Up to `n` training pairs of different values, each unordered pair at most once, int [n, 2]."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(split.seen_pairs[split.seen_pairs[:, 0] != split.seen_pairs[:, 1]])
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    return pairs[np.sort(first)][:n]


@cache
def paired_sequences(split: Split, name: str, data: DataConfig) -> Sequences:
    """The same operand pairs in every kind (`name` of a kind, or `twin` for a second 0-var set), in other prefixes.

    Raises:
        NotApplicable: the split has fewer than two pairs to compare, or the task too few constants.
    """
    pairs = distinct_pairs(split, data.pairs, data.seed)
    if len(pairs) < 2:
        raise NotApplicable("the split has fewer than two training pairs of different values to compare")
    if split.task.modulus < split.task.max_assignments + 2:
        raise NotApplicable("the task has too few constants for sequences whose values all differ")
    kind = Kind.ZERO if name == TWIN else Kind(name)
    stream = len(KINDS) if name == TWIN else KINDS.index(kind)
    rng = np.random.default_rng(np.random.Philox(key=np.array([data.seed, 3000 + stream], dtype=np.uint64)))
    n = len(pairs)
    variables = draw_variables(
        rng,
        np.full(n, kind in (Kind.LEFT, Kind.TWO)),
        np.full(n, kind in (Kind.RIGHT, Kind.TWO)),
        split.allowed_variables(0),
        split.allowed_variables(1),
    )
    return draw_sequences(
        split.task, rng, pairs, variables, np.full(n, split.task.max_assignments), distinct_values=True
    )


def resid_mid(subject: Subject, name: str) -> Float[Tensor, "pairs d_model"]:
    """`blocks.1.hook_resid_mid` at `=` on the paired sequences of a kind, or of the `twin` set."""
    return subject.run(paired_sequences(subject.split, name, subject.data)).activations.resid_mid


def _vectors(subject: Subject, kind: Kind, centred: bool) -> tuple[Tensor, Tensor]:
    """Vectors of a kind and of their 0-variable twins in other prefixes, less each set's mean if `centred`."""
    pair = resid_mid(subject, kind), resid_mid(subject, TWIN)
    return tuple(vectors - vectors.mean(0) for vectors in pair) if centred else pair  # pyright: ignore


def twin_cosine(subject: Subject, kind: Kind, *, centred: bool) -> Measurement:
    """Mean cosine between a sequence and the 0-variable sequence with the same operand values."""
    a, b = _vectors(subject, kind, centred)
    return mean(F.cosine_similarity(a, b).numpy())


def mismatched_cosine(subject: Subject, kind: Kind, *, centred: bool) -> Measurement:
    """Mean cosine between a sequence and a 0-variable sequence with other operand values: the control."""
    a, b = _vectors(subject, kind, centred)
    return mean(F.cosine_similarity(a, b.roll(1, 0)).numpy())


def twin_retrieval(subject: Subject, kind: Kind) -> Measurement:
    """Share of sequences whose nearest 0-variable vector (centred cosine) is that of their own operand values."""
    a, b = (F.normalize(vectors) for vectors in _vectors(subject, kind, centred=True))
    return share(((a @ b.T).argmax(1) == torch.arange(len(a))).numpy())
