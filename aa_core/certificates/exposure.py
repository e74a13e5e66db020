"""Divisions that every domain has: what training showed of a sequence, its letters, its places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from aa_core.certificates.domain import Axis
from aa_core.task.config import TaskConfig
from aa_core.task.sequences import NO_VARIABLE, Sequences

RESTRICTED = ("", ", one restricted letter", ", two restricted letters")


@dataclass(frozen=True, eq=False)
class Exposure:
    """What training showed.

    Attributes:
        seen: `seen[n1, n2]`: the ordered pair is in training.
        never: `never[side, letter]`: training never puts the letter on that side (0 left, 1 right).
    """

    seen: Bool[np.ndarray, "modulus modulus"]
    never: Bool[np.ndarray, "2 n_variables"]


def sequence_axes(task: TaskConfig, sequences: Sequences, exposure: Exposure) -> Mapping[str, Axis]:
    """Divide sequences by pool, side of the variable, letters, places of their assignments, and equal values.

    Letters and places of constant operands have the label `-`.
    """
    values, variables = sequences.values, sequences.variables
    is_variable = variables != NO_VARIABLE
    restricted = (exposure.never[[0, 1], variables] & is_variable).sum(axis=1)
    held_out = ~exposure.seen[values[:, 0], values[:, 1]]
    pools = tuple(f"{pair}{letters}" for pair in ("seen", "held-out") for letters in RESTRICTED)
    letters = (*task.variables, "-")  # NO_VARIABLE is -1, the last
    places = (*map(str, range(task.prefix_length)), "-")
    axes = {
        "pool": Axis(pools, held_out * len(RESTRICTED) + restricted),
        "kind": Axis(("0-var", "1L", "1R", "2-var"), is_variable @ np.array([1, 2])),
        "values": Axis(("different", "equal"), (values[:, 0] == values[:, 1]).astype(np.int64)),
    }
    for side, name in enumerate(("left", "right")):
        axes[f"{name} letter"] = Axis(letters, variables[:, side] % len(letters))
        place = np.where(is_variable[:, side], sequences.sources[:, side] - 1, len(places) - 1)
        axes[f"{name} assigned at"] = Axis(places, place)
    return axes
