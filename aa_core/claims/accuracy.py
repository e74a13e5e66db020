"""Accuracy where binding at random cannot help; other claims lean on these."""

from __future__ import annotations

from functools import partial

from aa_core.circuits.accuracy import full_prefix_accuracy
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least
from aa_core.task.sampling import KINDS, Kind

ADDITION = ("win-permuted", "constants-permuted", "ov1-rows-shuffled", "output-phases-shuffled", "random")
BINDING = ("uniform-attention-0", "positions-permuted", "variables-equal", "ov0-without-variables", "qk1-rotated")
BROKEN_BY = {
    Kind.ZERO: ADDITION,
    Kind.LEFT: (*BINDING, "equals-ignores-left", *ADDITION),
    Kind.RIGHT: (*BINDING, "equals-ignores-right", *ADDITION),
    Kind.TWO: (*BINDING, "equals-ignores-left", "equals-ignores-right", *ADDITION),
}


def solves(kind: Kind) -> Criterion:
    """The model answers full prefixes of a kind."""
    return Criterion(f"accuracy on full prefixes of {kind}", partial(full_prefix_accuracy, kind=kind), at_least(0.9))


CLAIMS = tuple(
    Claim(
        id=f"accuracy/{kind}",
        statement=f"The model answers {kind} sequences with a full prefix of distinct values.",
        paper="The trained model solves 0-, 1- and 2-variable sequences.",
        form=Form.CONTROLLED,
        criterion=solves(kind),
        evidence="authors' final .994 to 1.000; a model that adds but binds at random: 1/6 (1-var), 1/15 (2-var)",
        broken_by=BROKEN_BY[kind],
    )
    for kind in KINDS
)
