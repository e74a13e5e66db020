"""`=` finds the operands in blocks.0 and, through them, the constants to add in blocks.1."""

from __future__ import annotations

from functools import partial

from aa_core.circuits.attention import equals_smaller_weight, equals_top_two
from aa_core.circuits.routing import operands_top_two
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least
from aa_core.task.sampling import KINDS, Kind

OPERANDS = "In the first layer `=` attends to the two operands (circuit description, layer 1)."
SOURCES = "In the second layer `=` attends to the constants assigned to its operands (circuit description, layer 2)."
QK0 = ("uniform-attention-0", "equals-ignores-left", "equals-ignores-right", "random")
QK1 = ("qk1-rotated", "qk1-rows-shuffled", "random")
BINDING = ("uniform-attention-0", "positions-permuted", "ov0-without-variables", "variables-equal", *QK1)
SOURCE_WEIGHT = {Kind.ZERO: 0.18, Kind.LEFT: 0.18, Kind.RIGHT: 0.18, Kind.TWO: 0.17}


def _claims(kind: Kind) -> tuple[Claim, ...]:
    broken = QK1 if kind is Kind.ZERO else BINDING
    return (
        Claim(
            id=f"routing/operands-top-two-{kind}",
            statement=f"Of all tokens before it, `=` attends in blocks.0 most to the two operands, in {kind}.",
            paper=OPERANDS,
            form=Form.LITERAL,
            criterion=Criterion(
                "share of sequences whose two largest weights in the row of `=`, itself left out, are on the operands",
                partial(operands_top_two, kind=kind),
                at_least(0.95),
            ),
            evidence="authors' run 1.000 from step 8001 on, at 5301 .61 (1L, 2-var), .98 (1R), .99 (0-var, with "
            ".001 of the weight on the left operand up to 5201: see the weights); random and uniform .00; one of seven "
            "other runs rests a third of the weight on `=` itself",
            broken_by=QK0,
        ),
        Claim(
            id=f"routing/operands-weight-{kind}",
            statement=f"In blocks.0 `=` gives a good part of its weight to each operand, in {kind}.",
            paper=OPERANDS,
            form=Form.CONTROLLED,
            criterion=Criterion(
                "mean of the smaller weight of `=` on the two operands",
                partial(equals_smaller_weight, layer=0, kind=kind),
                at_least(0.15),
            ),
            evidence="authors' late worst .255, other runs .190; random and uniform .062; at most .10 up to step 5301, "
            "when the sum of the two is 1.000",
            broken_by=QK0,
        ),
        Claim(
            id=f"routing/sources-top-two-{kind}",
            statement=f"In blocks.1 the two largest weights of `=` are those on the constants to add, in {kind}.",
            paper=SOURCES,
            form=Form.LITERAL,
            criterion=Criterion(
                "share of sequences whose two largest weights in the row of `=` are on those constants",
                partial(equals_top_two, layer=1, kind=kind),
                at_least(0.95),
            ),
            evidence="authors' late worst .999; random at most .10, broken at most .28 (0-var) and .05",
            broken_by=broken,
        ),
        Claim(
            id=f"routing/sources-weight-{kind}",
            statement=f"In blocks.1 `=` gives a good part of its weight to each of those constants, in {kind}.",
            paper=SOURCES,
            form=Form.CONTROLLED,
            criterion=Criterion(
                "mean of the smaller weight of `=` on the two constants",
                partial(equals_smaller_weight, layer=1, kind=kind),
                at_least(SOURCE_WEIGHT[kind]),
            ),
            evidence="authors' late worst .34 (0-var), .243 (1L), .255 (1R), .203 (2-var); other runs "
            ".249, 2-var .232; random .062, broken at most .083, 2-var at most .14 up to step 5301; the sum "
            "of the two does not tell: the direct operand of 1-var alone gives .5",
            broken_by=broken,
        ),
    )


CLAIMS = tuple(claim for kind in KINDS for claim in _claims(kind))
