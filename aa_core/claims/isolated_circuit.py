"""The described circuit is enough by itself, and no part of it can be left out."""

from __future__ import annotations

from functools import partial

from aa_core.circuits.isolated_circuit import Part, circuit_accuracy
from aa_core.claims.accuracy import solves
from aa_core.claims.causal import ADDITION, BROKEN_BY, UNBOUND, WITH_VARIABLES
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least, at_most
from aa_core.task.sampling import KINDS, Kind

PAPER = (
    "The circuit: previous-token head, lookup by variable, copy of values, addition in the MLP (circuit description)."
)
ENOUGH = {Kind.ZERO: 0.95, Kind.LEFT: 0.9, Kind.RIGHT: 0.9, Kind.TWO: 0.8}


def _alone(kind: Kind) -> Criterion:
    return Criterion("accuracy of the circuit by itself", partial(circuit_accuracy, kind=kind), at_least(ENOUGH[kind]))


def _needs(part: Part, kind: Kind) -> Claim:
    what = {
        Part.VARIABLE_IN_KEYS: "the variable that blocks.0 carries to each constant",
        Part.OPERANDS_IN_QUERY: "what blocks.0 carries from the operands to `=`",
        Part.VALUES: "the two constants that blocks.1 fetches",
    }[part]
    return Claim(
        id=f"circuit/needs-{part}-{kind}",
        statement=f"The circuit by itself does not answer {kind} without {what}.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "accuracy of the circuit with that taken from another sequence",
            partial(circuit_accuracy, kind=kind, without=part),
            at_most(0.2 if part is Part.VALUES else UNBOUND),
        ),
        conditions=(_alone(kind),),
        evidence="authors' late checkpoints at most .11 (variable), .17 (operands), .03 (values)",
        broken_by=ADDITION if kind is Kind.ZERO else BROKEN_BY,
    )


CLAIMS = (
    *(
        Claim(
            id=f"circuit/alone-{kind}",
            statement=f"With all but the described circuit taken from other sequences, {kind} is still answered.",
            paper=PAPER,
            form=Form.CONTROLLED,
            criterion=_alone(kind),
            conditions=(solves(kind),),
            evidence="authors' late worst 1.00 (0-var), .97 (1L, 1R), .88 (2-var); random and broken at most .21; step "
            "5301 .70, .19, .93, .25",
            broken_by=ADDITION if kind is Kind.ZERO else BROKEN_BY,
        )
        for kind in KINDS
    ),
    *(_needs(Part.VARIABLE_IN_KEYS, kind) for kind in WITH_VARIABLES),
    *(_needs(Part.OPERANDS_IN_QUERY, kind) for kind in WITH_VARIABLES),
    *(_needs(Part.VALUES, kind) for kind in KINDS),
)
