"""What linear probes read off the residual stream: variables at their constants, then pairs of values, then sums."""

from __future__ import annotations

from functools import partial

from aa_core.circuits.probes import answer, value_pair, variable_at_constant
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least, at_most

BROKEN_BY = ("uniform-attention-0", "qk1-rotated", "qk1-rows-shuffled", "variables-equal", "ov0-without-variables")

CLAIMS = (
    Claim(
        id="probes/variable-at-its-constant",
        statement="After blocks.0 the residual stream at a constant tells the variable that it is assigned to.",
        paper="A linear probe on the first layer's output reads the variable at its constant (progress measures).",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "accuracy of a ridge probe for the variable on blocks.1.hook_resid_pre at its constant",
            partial(variable_at_constant, layer=1),
            at_least(0.98),
        ),
        conditions=(Criterion("the same before blocks.0", partial(variable_at_constant, layer=0), at_most(0.12)),),
        evidence="authors' run 1.000 from step 3201 on, .066 before blocks.0 (chance .083); random weights .41, since "
        "attention to everything tells which variables there are; positions permuted .26 to .73",
        broken_by=("uniform-attention-0", "variables-equal", "ov0-without-variables", "positions-permuted", "random"),
    ),
    Claim(
        id="probes/value-pair-before-mlp",
        statement="Before the MLP the residual stream at `=` tells the two operand values, but not their order.",
        paper="The second layer copies the two values to `=` (circuit description, layer 2).",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "share of 2-var sequences whose two values a ridge probe ranks first on blocks.1.hook_resid_mid",
            partial(value_pair, place="blocks.1.hook_resid_mid"),
            at_least(0.8),
        ),
        conditions=(
            Criterion(
                "the same before blocks.1's attention",
                partial(value_pair, place="blocks.1.hook_resid_pre"),
                at_most(0.15),
            ),
        ),
        evidence="authors' late checkpoints .90 to 1.000 against .03 to .09 before; random .07, step 5301 .32; a probe "
        "of the ordered values stays near .5, since both arrive through one OV circuit with equal weight",
        broken_by=(*BROKEN_BY, "positions-permuted", "random"),
    ),
    Claim(
        id="probes/sum-after-mlp",
        statement="The sum can be read after the MLP and not before it.",
        paper="The MLP adds (circuit description).",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "accuracy of a ridge probe for the answer of 2-var sequences on blocks.1.hook_resid_post",
            partial(answer, place="blocks.1.hook_resid_post"),
            at_least(0.75),
        ),
        conditions=(
            Criterion("the same before the MLP", partial(answer, place="blocks.1.hook_resid_mid"), at_most(0.1)),
        ),
        evidence="authors' late checkpoints .905 to .988 against .05 to .06 before, three runs at 3e-3 .87 "
        "to .99; random .02, step 5301 .23, five frequencies removed .53; with W_in permuted the MLP's features still "
        "tell the sum (.91)",
        broken_by=(*BROKEN_BY, "constants-permuted", "ov1-rows-shuffled", "top-5-frequencies-removed", "random"),
    ),
)
