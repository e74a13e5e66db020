"""The gradient turns blocks.1's QK circuit into the identity on variables."""

from __future__ import annotations

from aa_core.circuits.gradient import (
    least_pull_argmax_before_binding,
    least_pull_z_before_binding,
    pull_argmax,
    pull_z,
)
from aa_core.claims.claim import Claim, Criterion, Form, Scope
from aa_core.statistics import at_least

PAPER = "The negative gradient of the loss with respect to the second layer's QK matrix is an identity block (theory)."
NAIVE = "; the literal V (-dL/dA) V^T is within 1.6 of 0 at every step, random weights too, and is not asserted"

CLAIMS = (
    Claim(
        id="gradient/identity",
        statement="With blocks.1's scores at 0 the loss pulls them towards matching each variable with itself.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "(mean of diagonal - mean off it) / standard deviation off it, of -dL/dM for scores q M k in the space of "
            "variable codes",
            pull_z,
            at_least(10),
        ),
        conditions=(Criterion("share of its rows with the maximum on the diagonal", pull_argmax, at_least(0.95)),),
        evidence="authors' run 22 to 55 from step 401 on, 1.2 at step 1; random -1.1 to 1.2; it needs the addition "
        "circuit (W_in permuted -5, constants permuted -10, OV rows shuffled -4) and not the binding" + NAIVE,
        broken_by=("win-permuted", "constants-permuted", "ov1-rows-shuffled", "random"),
    ),
    Claim(
        id="gradient/identity-before-binding",
        statement="While the model adds and does not bind yet, the loss pulls its scores towards the identity.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "least such value at the model's own scores, over checkpoints with .9 or more of 0-var right and below .3 "
            "of each kind with variables",
            least_pull_z_before_binding,
            at_least(5),
        ),
        conditions=(
            Criterion(
                "least share of its rows with the maximum on the diagonal",
                least_pull_argmax_before_binding,
                at_least(0.9),
            ),
        ),
        evidence="authors' run 21 to 22 at steps 401 to 2001, two runs of the paper's recipe 11 to 27, all rows 1.00; "
        "it falls to 3 as soon as binding begins, and means nothing once the loss is near 0",
        broken_by=("win-permuted", "constants-permuted", "random-trajectory"),
        scope=Scope.TRAJECTORY,
    ),
)
