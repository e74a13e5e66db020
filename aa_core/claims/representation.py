"""Sequences with the same operand values reach the MLP as the same vector."""

from __future__ import annotations

from functools import partial

from aa_core.circuits.representation import mismatched_cosine, twin_cosine, twin_retrieval
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least, at_most
from aa_core.task.sampling import Kind

PAPER = "Before the second MLP the residual stream is the same with and without variables, cosine about 1."
BROKEN_BY = {
    kind: (
        "uniform-attention-0",
        "variables-equal",
        "qk1-rotated",
        "ov1-rows-shuffled",
        *ignores,
        "prefix-marked",
        "random",
    )
    for kind, ignores in (
        (Kind.LEFT, ("equals-ignores-left",)),
        (Kind.RIGHT, ("equals-ignores-right",)),
        (Kind.TWO, ("equals-ignores-left", "equals-ignores-right")),
    )
}
CLOSE = {Kind.LEFT: 0.90, Kind.RIGHT: 0.90, Kind.TWO: 0.86}


def _claims(kind: Kind) -> tuple[Claim, ...]:
    return (
        Claim(
            id=f"shared-representation/cosine-{kind}",
            statement=f"A {kind} sequence and the 0-var sequence with its values are nearly parallel before the MLP.",
            paper=PAPER,
            form=Form.LITERAL,
            criterion=Criterion(
                "mean cosine of blocks.1.hook_resid_mid at `=` with the 0-var twin's",
                partial(twin_cosine, kind=kind, centred=False),
                at_least(CLOSE[kind]),
            ),
            conditions=(
                Criterion(
                    "mean cosine with another pair's",
                    partial(mismatched_cosine, kind=kind, centred=False),
                    at_most(0.5),
                ),
            ),
            evidence="authors' late worst .948 (1L, 1R), .905 (2-var), mismatched .10 to .14; uniform attention in "
            "blocks.0 at most .87; random weights reach .95 to .97, so the cosine alone proves nothing, but so does "
            "their mismatched one; .58 to .79 at step 5301",
            broken_by=BROKEN_BY[kind],
        ),
        Claim(
            id=f"shared-representation/centred-{kind}",
            statement=f"That holds for {kind} after the vectors' common mean is taken out.",
            paper=PAPER,
            form=Form.CONTROLLED,
            criterion=Criterion(
                "mean centred cosine with the 0-var twin's",
                partial(twin_cosine, kind=kind, centred=True),
                at_least(CLOSE[kind]),
            ),
            conditions=(
                Criterion(
                    "mean centred cosine with another pair's",
                    partial(mismatched_cosine, kind=kind, centred=True),
                    at_most(0.05),
                ),
            ),
            evidence="authors' late worst .946 (1L), .947 (1R), .922 (2-var); random .08, broken at most .78",
            broken_by=BROKEN_BY[kind],
        ),
        Claim(
            id=f"shared-representation/retrieval-{kind}",
            statement=f"Among all 0-var vectors the nearest to a {kind} sequence's is that with its own values.",
            paper=PAPER,
            form=Form.CONTROLLED,
            criterion=Criterion(
                "share of sequences whose nearest 0-var vector is their twin's",
                partial(twin_retrieval, kind=kind),
                at_least(0.9),
            ),
            evidence="authors' final .98 to 1.00; random .02, broken at most .48",
            broken_by=BROKEN_BY[kind],
        ),
    )


CLAIMS = tuple(claim for kind in (Kind.LEFT, Kind.RIGHT, Kind.TWO) for claim in _claims(kind))
