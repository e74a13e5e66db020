"""blocks.1's QK circuit matches a variable with itself, as blocks.0's OV circuit carries it."""

from __future__ import annotations

from aa_core.circuits.attention import previous_token_weight
from aa_core.circuits.identity import (
    identity_argmax,
    identity_energy,
    identity_least_margin,
    identity_margin,
    identity_z,
)
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least

PAPER = "The second layer's QK matrix has an identity block on variables carried by the first layer's OV matrix."
BROKEN_BY = (
    "qk1-rotated",
    "qk1-rows-shuffled",
    "variables-equal",
    "ov0-without-variables",
    "uniform-attention-0",
    "random",
)

# The block is made of weights alone and does not see whether blocks.0 delivers variables at all.
DELIVERED = Criterion(
    "mean blocks.0 weight of assigned constants on the previous position", previous_token_weight, at_least(0.85)
)

CLAIMS = (
    Claim(
        id="qk-identity/argmax",
        statement="In blocks.1's QK block on variables each row is largest on the diagonal.",
        paper=PAPER,
        form=Form.LITERAL,
        criterion=Criterion("share of rows with the maximum on the diagonal", identity_argmax, at_least(0.95)),
        conditions=(DELIVERED,),
        evidence="authors' late checkpoints 1.000; random .25, broken .083; .75 at step 5301",
        broken_by=(*BROKEN_BY, "letters-merged"),
    ),
    Claim(
        id="qk-identity/z",
        statement="The diagonal of that block stands out from the rest.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion("(mean of diagonal - mean off it) / standard deviation off it", identity_z, at_least(4)),
        conditions=(DELIVERED,),
        evidence="authors' late checkpoints 6.00 to 6.86; random .40, variables equal 1.99; 1.29 at step 5301",
        broken_by=BROKEN_BY,
    ),
    Claim(
        id="qk-identity/margin",
        statement="Each variable matches itself better than any other, by a clear margin.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "mean of diagonal - largest other of the row, in standard deviations off the diagonal",
            identity_margin,
            at_least(3),
        ),
        conditions=(
            Criterion("least such margin over variables", identity_least_margin, at_least(1.5)),
            DELIVERED,
        ),
        evidence="authors' late checkpoints 4.64 to 5.78 (least 3.25 to 4.22); random -1.1, broken 0",
        broken_by=(*BROKEN_BY, "letters-merged"),
    ),
    Claim(
        id="qk-identity/energy",
        statement="Most of that block, beyond row and column effects, is its diagonal.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "share of the double-centred block's squared norm on the diagonal", identity_energy, at_least(0.55)
        ),
        conditions=(DELIVERED,),
        evidence="authors' late checkpoints .714 to .739; random .083, broken .061; .29 at step 5301",
        broken_by=BROKEN_BY,
    ),
)
