"""Sweeps that teach nothing: the claims must refuse them."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from aa_core.sweeps.curve import Curve

HELD_OUT, SEEN = "pool/0-var/held-out", "pool/0-var/seen"


def shuffled(curve: Curve, seed: int = 0) -> Curve:
    """What was measured, handed to the points at random."""
    return _handed_out(curve, np.random.default_rng(seed).permutation(len(curve.records)))


def leaking(curve: Curve) -> Curve:
    """What should be new to the models is as if it had been in training: right at every point, and at once."""
    return replace(
        curve,
        records=tuple(
            replace(
                record,
                accuracies={name: (n, n) for name, (_, n) in record.accuracies.items()},
                phases={**record.phases, HELD_OUT: record.phases[SEEN]},
            )
            for record in curve.records
        ),
    )


def backwards(curve: Curve) -> Curve:
    """What was measured at the least value, handed to the greatest, and so on: less data would be better."""
    return _handed_out(curve, np.argsort(-curve.x, kind="stable")[np.argsort(np.argsort(curve.x, kind="stable"))])


def _handed_out(curve: Curve, order: np.ndarray) -> Curve:
    """Each point with what was measured at the point whose place `order` names."""
    return replace(
        curve,
        records=tuple(
            replace(record, accuracies=curve.records[other].accuracies, phases=curve.records[other].phases)
            for record, other in zip(curve.records, order, strict=True)
        ),
    )


SWEEP_CONTROLS: Mapping[str, Callable[[Curve], Curve]] = types.MappingProxyType(
    {"shuffled": shuffled, "leaking": leaking, "reversed": backwards}
)
