"""Answers on constant pairs and variable positions that training never showed."""

from __future__ import annotations

from functools import partial

from aa_core.circuits.accuracy import held_out_zero_variable, pool_accuracy
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least
from aa_core.task.sampling import POOLS, Kind

PAPER = "The model answers constant pairs and variable positions that it never saw (out of distribution)."
EVIDENCE = "authors' run, 200 checkpoints from step 20001 on: "
HELD_OUT = ("sums-looked-up",)
RESTRICTED = ("restricted-letters-unseen",)
ADDITION = (*HELD_OUT, "win-permuted", "constants-permuted", "random")
BINDING = ("uniform-attention-0", "variables-equal", "qk1-rotated", "win-permuted", "random")


def _pool_claim(pool: str, bound: float, evidence: str, statement: str, kind: Kind | None = None) -> Claim:
    name = pool.replace("/", "-") + (f"-{kind}" if kind else "")
    return Claim(
        id=f"generalisation/{name}",
        statement=statement,
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            f"accuracy on {pool}" + (f", {kind} alone" if kind else ""),
            partial(pool_accuracy, name=pool, kind=kind),
            at_least(bound),
        ),
        evidence=EVIDENCE + evidence,
        broken_by=(*BINDING, *HELD_OUT * POOLS[pool].held_out, *RESTRICTED * bool(POOLS[pool].restricted)),
    )


CLAIMS = (
    Claim(
        id="generalisation/0-var-held-out",
        statement="At least 99 % of the held-out constant pairs are added right.",
        paper=PAPER,
        form=Form.LITERAL,
        criterion=Criterion("accuracy over all held-out pairs", held_out_zero_variable, at_least(0.99)),
        evidence="authors' final 1039 of 1045, all six errors n + n; 20001 .992, 30001 .990, 39501 .990, 39901 .995",
        broken_by=ADDITION,
    ),
    Claim(
        id="generalisation/0-var-held-out-off-diagonal",
        statement="Held-out pairs of two different constants are added right almost without exception.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "accuracy over all held-out pairs n + m with n != m",
            partial(held_out_zero_variable, part="off-diagonal"),
            at_least(0.995),
        ),
        evidence="authors' final 1025 of 1025; the diagonal n + n is at 14 of 20",
        broken_by=ADDITION,
    ),
    _pool_claim(
        "1-var/held-out", 0.96, "min .981, median .992", "1-variable sequences with held-out pairs are solved."
    ),
    _pool_claim(
        "1-var/restricted",
        0.90,
        "min .946, median 1.000",
        "1-variable sequences with letters on a side that training never shows are solved.",
        Kind.LEFT,
    ),
    _pool_claim(
        "1-var/restricted",
        0.90,
        "min .946, median 1.000",
        "1-variable sequences with letters on a side that training never shows are solved.",
        Kind.RIGHT,
    ),
    _pool_claim("2-var/seen", 0.93, "min .946, median .998", "2-variable sequences with training pairs are solved."),
    _pool_claim(
        "2-var/held-out", 0.90, "min .944, median .990", "2-variable sequences with held-out pairs are solved."
    ),
    _pool_claim(
        "2-var/one-restricted",
        0.88,
        "min .925, median .991",
        "2-variable sequences with one letter on a side that training never shows are solved.",
    ),
    _pool_claim(
        "2-var/both-restricted",
        0.70,
        "min .832, median .996; four pairs of letters, so one bad pair costs a quarter",
        "2-variable sequences with both letters on sides that training never shows are solved.",
    ),
)
