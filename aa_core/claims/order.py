"""Addition is learned first, then binding, and neither needs the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float

from aa_core.circuits.accuracy import full_prefix_accuracy, held_out_zero_variable, pool_accuracy
from aa_core.circuits.dynamics import TrajectorySubject, crossing_ratio, first_reached
from aa_core.circuits.routing import ideal_routing_accuracy, unbound_accuracy, valueless_accuracy, valueless_top_two
from aa_core.claims.accuracy import solves
from aa_core.claims.claim import Claim, Criterion, Form, Scope
from aa_core.statistics import Measurement, above, at_least, at_most, exact
from aa_core.task.sampling import Kind

BROKEN_BY = ("reversed-trajectory", "constant-trajectory", "all-at-once", "never-binds", "random-trajectory")

Curve = Callable[[TrajectorySubject], Float[np.ndarray, " steps"]]


def _pool(name: str) -> Curve:
    return lambda trajectory: trajectory.curve(pool_accuracy, name=name)


def _kind(kind: Kind) -> Curve:
    return lambda trajectory: trajectory.curve(full_prefix_accuracy, kind=kind)


def _ratio(early: Curve, late: Curve) -> Callable[[TrajectorySubject], Measurement]:
    return lambda trajectory: crossing_ratio(trajectory, early(trajectory), late(trajectory))


def _held_out(trajectory: TrajectorySubject) -> Float[np.ndarray, " steps"]:
    return trajectory.curve(held_out_zero_variable)


def _ideal(trajectory: TrajectorySubject) -> Float[np.ndarray, " steps"]:
    return trajectory.curve(ideal_routing_accuracy, kind=Kind.TWO)


def _accuracy_when_ideal_works(trajectory: TrajectorySubject) -> Measurement:
    """Accuracy on 2-var at the first step where it would be 95 % with the right attention in blocks.1."""
    first = first_reached(_ideal(trajectory))
    value = float("nan") if first is None else _kind(Kind.TWO)(trajectory)[first]
    return exact(value, len(trajectory.steps), note="" if first is None else f"at step {trajectory.steps[first]}")


INDEPENDENT = "Modular addition is learned independent of variable binding (abstract)."

CLAIMS = (
    Claim(
        id="order/0-var-before-1-var",
        statement="Sums of constants are learned before sums with one variable.",
        paper="The model first learns modular addition, then variable assignment (abstract; training dynamics).",
        form=Form.LITERAL,
        criterion=Criterion(
            "steps to 95 % on 1-var/seen, over steps to 95 % on 0-var/seen",
            _ratio(_pool("0-var/seen"), _pool("1-var/seen")),
            above(1),
        ),
        evidence="authors' run: 401 and 5401",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/0-var-before-1R",
        statement="Sums of constants are learned before sums with a variable on the right.",
        paper="As order/0-var-before-1-var.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % on full prefixes of 1R, over those of 0-var",
            _ratio(_kind(Kind.ZERO), _kind(Kind.RIGHT)),
            above(1),
        ),
        evidence="authors' run: 401 and 4701",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/0-var-before-1L",
        statement="Sums of constants are learned before sums with a variable on the left.",
        paper="As order/0-var-before-1-var.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % on full prefixes of 1L, over those of 0-var",
            _ratio(_kind(Kind.ZERO), _kind(Kind.LEFT)),
            above(1),
        ),
        evidence="authors' run: 401 and 5501",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/2-var-last",
        statement="Sums of two variables are learned after either sum of one variable.",
        paper="Composition on two variables follows variable assignment (training dynamics).",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % on full prefixes of 2-var, over those of 1L",
            _ratio(_kind(Kind.LEFT), _kind(Kind.TWO)),
            above(1),
        ),
        conditions=(Criterion("the same, over those of 1R", _ratio(_kind(Kind.RIGHT), _kind(Kind.TWO)), above(1)),),
        evidence="authors' run: 4701 (1R), 5501 (1L), 6101 (2-var); three other runs: a factor of 1.4 to 4",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/binding-takes-longer",
        statement="Binding two variables takes at least three times as many steps as addition.",
        paper="As order/0-var-before-1-var.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % on full prefixes of 2-var, over those of 0-var",
            _ratio(_kind(Kind.ZERO), _kind(Kind.TWO)),
            at_least(3),
        ),
        evidence="authors' run: 401 and 6101, a ratio of 15",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/addition-ready-before-binding",
        statement="Addition of what blocks.1 attends to works before the model finds what to attend to.",
        paper=INDEPENDENT,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % on 2-var, over those with the row of `=` in blocks.1 set to half on each right constant",
            _ratio(_ideal, _kind(Kind.TWO)),
            above(1),
        ),
        conditions=(
            Criterion("accuracy on 2-var at the second of these steps", _accuracy_when_ideal_works, at_most(0.5)),
        ),
        evidence="authors' run 1.000 with the right attention at step 3201, where accuracy is .18; .87 at 2001",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/held-out-pairs-later",
        statement="Sums of held-out constants are right later than those of training pairs.",
        paper="Addition generalises after it fits the training pairs, as in grokking (training dynamics).",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "steps to 95 % over all held-out pairs, over those to 95 % on 0-var/seen",
            _ratio(_pool("0-var/seen"), _held_out),
            above(1),
        ),
        evidence="authors' run 401 and 3301; lr 3e-3 300 and 400: the gap is there but small",
        broken_by=("reversed-trajectory", "constant-trajectory", "all-at-once", "random-trajectory"),
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="order/addition-without-binding",
        statement="Without anything that binds, constants are added as before.",
        paper=INDEPENDENT,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "accuracy on 0-var with uniform attention in blocks.0",
            partial(unbound_accuracy, kind=Kind.ZERO),
            at_least(0.9),
        ),
        conditions=(
            Criterion(
                "accuracy on 2-var with uniform attention in blocks.0",
                partial(unbound_accuracy, kind=Kind.TWO),
                at_most(0.2),
            ),
            solves(Kind.TWO),
        ),
        evidence="authors' run 1.000 from step 15501 on (2-var .07 to .11); .06 to .12 up to step 5301 and .88 at "
        "8001: at first the right operand travels through blocks.0",
        broken_by=("win-permuted", "uniform-attention-0", "variables-equal", "random"),
    ),
    Claim(
        id="order/binding-without-values",
        statement="Without anything that tells constants apart, `=` finds the right ones as before.",
        paper=INDEPENDENT,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "share of 2-var sequences in which the two largest weights of `=` in blocks.1 are on the constants to add, "
            "with all constants' embeddings equal to their mean",
            partial(valueless_top_two, kind=Kind.TWO),
            at_least(0.9),
        ),
        conditions=(
            Criterion("accuracy on 0-var with them", partial(valueless_accuracy, kind=Kind.ZERO), at_most(0.1)),
            solves(Kind.ZERO),
        ),
        evidence="authors' run 1.000 from step 8001 on (0-var .017), .33 at step 5301; random .02",
        broken_by=("uniform-attention-0", "variables-equal", "qk1-rotated", "qk1-rows-shuffled", "random"),
    ),
)
