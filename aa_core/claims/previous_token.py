"""blocks.0 attends from each assigned constant to the variable before it."""

from __future__ import annotations

from aa_core.circuits.attention import (
    previous_token_argmax,
    previous_token_weight,
    previous_token_weight_by_position,
    previous_token_weight_by_variable,
)
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least

PAPER = "In the first layer each constant attends to the variable before it (circuit description, layer 1)."
BROKEN_BY = ("uniform-attention-0", "positions-permuted", "one-letter-bound", "random")

CLAIMS = (
    Claim(
        id="previous-token/argmax",
        statement="In blocks.0 a constant attends most to the token before it.",
        paper=PAPER,
        form=Form.LITERAL,
        criterion=Criterion(
            "share of assigned constants whose row of blocks.0.attn.hook_pattern is largest at the previous position",
            previous_token_argmax,
            at_least(0.98),
        ),
        evidence="authors' late checkpoints 1.000; random .20, uniform attention .167, positions permuted .67",
        broken_by=(*BROKEN_BY, "one-letter-unbound", "one-position-unbound"),
    ),
    Claim(
        id="previous-token/weight",
        statement="In blocks.0 a constant attends to the token before it with most of its weight.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "mean weight of assigned constants on the previous position", previous_token_weight, at_least(0.85)
        ),
        evidence="authors' late checkpoints .918 to .962; random .20, positions permuted .55",
        broken_by=(*BROKEN_BY, "one-position-unbound"),
    ),
    Claim(
        id="previous-token/every-variable",
        statement="That holds for the constants of every variable.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion("least mean weight over variables", previous_token_weight_by_variable, at_least(0.75)),
        evidence="authors' late checkpoints .841 to .948; random .20, positions permuted .51",
        broken_by=(*BROKEN_BY, "one-letter-unbound"),
    ),
    Claim(
        id="previous-token/every-position",
        statement="That holds at every position of the prefix.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "least mean weight over positions, on the pools", previous_token_weight_by_position, at_least(0.75)
        ),
        evidence="authors' late checkpoints .862 to .924; random and positions permuted .08",
        broken_by=(*BROKEN_BY, "one-position-unbound"),
    ),
)
