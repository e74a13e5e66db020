"""The addition circuit by itself, and that the model uses it."""

from __future__ import annotations

from functools import partial

from aa_core.circuits.addition import (
    attention_output_accuracy,
    own_sum_with_donor,
    table_accuracy,
    table_margin,
)
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least
from aa_core.task.sampling import Kind

PAPER = "The second layer's OV circuit and MLP alone add two constants modulo 59 (circuit description, addition)."
BROKEN_BY = (
    "win-permuted",
    "constants-permuted",
    "ov1-rows-shuffled",
    "output-phases-shuffled",
    "top-5-frequencies-removed",
    "random",
)

CLAIMS = (
    Claim(
        id="addition/table",
        statement="blocks.1's OV circuit and MLP, cut out of the model, add any two constants.",
        paper=PAPER,
        form=Form.LITERAL,
        criterion=Criterion(
            "share of all pairs with the right argmax of relu((OV(n) + OV(m)) W_in) W_out W_U",
            table_accuracy,
            at_least(0.98),
        ),
        conditions=(Criterion("the same over held-out pairs", partial(table_accuracy, held_out=True), at_least(0.97)),),
        evidence="authors' late worst .998 (held-out .994); random .014 to .018, broken at most .017; .794 at step "
        "401; it is ready 4,000 steps before the model uses it: see addition/own-sum-with-donor",
        broken_by=BROKEN_BY,
    ),
    Claim(
        id="addition/margin",
        statement="It does so by a clear margin.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "mean of the right logit - the largest wrong one, in standard deviations of the logits",
            table_margin,
            at_least(1.2),
        ),
        evidence="authors' late worst 1.98, other runs 1.52 at the least; random -2.4; .35 at step 401",
        broken_by=BROKEN_BY,
    ),
    Claim(
        id="addition/own-sum-with-donor",
        statement="Constants reach the sum through blocks.1: what blocks.0 writes at `=` may come from any sequence.",
        paper="Addition happens in the second layer alone, independent of variable binding in the first.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "accuracy on 0-var with another sequence's blocks.0.hook_attn_out at `=`",
            own_sum_with_donor,
            at_least(0.95),
        ),
        evidence="authors' late checkpoints 1.000; .02 at step 3201 and .21 at 5301, where the right operand of the "
        "donor is added instead: until the spike the model adds with another circuit; random .02",
        broken_by=BROKEN_BY,
    ),
    Claim(
        id="addition/attention-output-is-enough",
        statement="The MLP adds from what blocks.1's attention writes alone.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "accuracy on 0-var of the MLP alone on blocks.1.hook_attn_out at `=`",
            partial(attention_output_accuracy, kind=Kind.ZERO),
            at_least(0.95),
        ),
        conditions=tuple(
            Criterion(f"the same on {kind}", partial(attention_output_accuracy, kind=kind), at_least(0.85))
            for kind in (Kind.LEFT, Kind.RIGHT, Kind.TWO)
        ),
        evidence="authors' late worst 1.00 (0-var) and .976 (2-var); .69 and .29 at step 5301; random .02",
        broken_by=BROKEN_BY,
    ),
)
