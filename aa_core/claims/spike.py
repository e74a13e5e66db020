"""The sudden rise of binding, and what rises with it.

Variables on one side may be learned gradually before; the spike is where the other side, or both, are. In the paper's
run it is the left one, `=` finds its operand then, and the previous-token head was there 2,500 steps before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from aa_core.circuits.accuracy import full_prefix_accuracy
from aa_core.circuits.attention import equals_smaller_weight, previous_token_argmax
from aa_core.circuits.dynamics import JUMP, Rise, TrajectorySubject, sudden_rise
from aa_core.circuits.identity import identity_z
from aa_core.claims.claim import Claim, Criterion, Form, Scope
from aa_core.statistics import Measurement, at_least, exact
from aa_core.task.sampling import Kind

PAPER = "Accuracy with variables rises in a spike, together with the circuit that binds them (training dynamics)."
BROKEN_BY = ("reversed-trajectory", "constant-trajectory", "never-binds", "random-trajectory")
SIDES = (Kind.LEFT, Kind.RIGHT)

Curve = Callable[[TrajectorySubject, Kind], Float[np.ndarray, " steps"]]


def _spike(trajectory: TrajectorySubject) -> Rise:
    return sudden_rise(trajectory, np.stack([trajectory.curve(full_prefix_accuracy, kind=kind) for kind in SIDES]))


def _height(trajectory: TrajectorySubject) -> Measurement:
    """How much accuracy rises in the spike."""
    spike, steps = _spike(trajectory), trajectory.steps
    note = f"{SIDES[spike.curve]} from step {steps[spike.start]} to {steps[spike.end]}"
    return exact(spike.height, len(steps), note=note)


def _around(curve: Curve, read: Callable[[float, float], float]) -> Callable[[TrajectorySubject], Measurement]:
    """A function of a curve's values before and after the spike; nan where there is no spike.

    The curve may depend on the kind that spikes.
    """

    def around(trajectory: TrajectorySubject) -> Measurement:
        spike = _spike(trajectory)
        if spike.height < JUMP:
            return exact(float("nan"), len(trajectory.steps), note="no spike")
        before, after = curve(trajectory, SIDES[spike.curve])[[spike.start, spike.end]]
        return exact(read(before, after), len(trajectory.steps), note=f"{before:.2f} before, {after:.2f} after")

    return around


def _identity(trajectory: TrajectorySubject, kind: Kind) -> Float[np.ndarray, " steps"]:
    return trajectory.curve(identity_z)


def _previous_token(trajectory: TrajectorySubject, kind: Kind) -> Float[np.ndarray, " steps"]:
    return trajectory.curve(previous_token_argmax)


def _operands(trajectory: TrajectorySubject, kind: Kind) -> Float[np.ndarray, " steps"]:
    return trajectory.curve(equals_smaller_weight, layer=0, kind=kind)


def _sources(trajectory: TrajectorySubject, kind: Kind) -> Float[np.ndarray, " steps"]:
    return trajectory.curve(equals_smaller_weight, layer=1, kind=kind)


CLAIMS = (
    Claim(
        id="spike/accuracy-jumps",
        statement="Accuracy with a variable on one side rises by half within a quarter of the steps made so far.",
        paper=PAPER,
        form=Form.LITERAL,
        criterion=Criterion(
            "rise of accuracy on full prefixes of 1L or 1R in a window of 25 % of the steps at its end",
            _height,
            at_least(JUMP),
        ),
        evidence="authors' run .69 (1L, step 5301 to 5401; 1R rises gradually before); six other runs .61 to .75, of "
        "1L or 1R, and .53 in one where both rise gradually",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="spike/identity-rises",
        statement="The identity block of blocks.1's QK circuit rises with it.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "rise of the identity block's z over the spike",
            _around(_identity, lambda before, after: after - before),
            at_least(0.3),
        ),
        evidence="authors' run 1.17, the largest of all 100-step intervals; other runs .43 to 2.05, but .20 where both "
        "sides rise gradually",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="spike/operands-in-place",
        statement="When it ends, `=` attends in blocks.0 to both operands.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "mean of the smaller weight of `=` on the two operands after the spike",
            _around(_operands, lambda before, after: after),
            at_least(0.18),
        ),
        evidence="authors' run .013 before and .24 after; other runs .27 to .36 after, in one .33 before",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="spike/sources-found",
        statement="Over it `=` comes to attend in blocks.1 to both constants that the answer is the sum of.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "rise over the spike of the mean of its smaller weight on the two constants",
            _around(_sources, lambda before, after: after - before),
            at_least(0.02),
        ),
        evidence="authors' run .12 before and .28 after; other runs rise by .04 to .15, but -.04 where both sides rise "
        "gradually",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="spike/previous-token-head-first",
        statement="The previous-token head of blocks.0 is there before it.",
        paper="The circuit forms in steps (training dynamics); summaries put the previous-token head at the spike.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "share of assigned constants that attend most to the token before, before the spike",
            _around(_previous_token, lambda before, after: before),
            at_least(0.95),
        ),
        evidence="authors' run and six others 1.000, the former from step 3201 on",
        broken_by=(*BROKEN_BY, "previous-token-late", "all-at-once"),
        scope=Scope.TRAJECTORY,
    ),
)
