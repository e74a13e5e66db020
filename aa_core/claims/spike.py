"""The sudden rise of binding, and what rises with it.

In the paper's run `=` finds the left operand then; the previous-token head was there 2,500 steps before.
"""

from __future__ import annotations

from collections.abc import Callable

from aa_core.circuits.accuracy import full_prefix_accuracy
from aa_core.circuits.attention import equals_smaller_weight, previous_token_argmax
from aa_core.circuits.dynamics import JUMP, Rise, TrajectorySubject, sudden_rise
from aa_core.circuits.identity import identity_z
from aa_core.claims.claim import Claim, Criterion, Form, Scope
from aa_core.statistics import Measurement, at_least, exact
from aa_core.task.sampling import Kind

PAPER = "Accuracy with variables rises in a spike, together with the circuit that binds them (training dynamics)."
BROKEN_BY = ("reversed-trajectory", "constant-trajectory", "never-binds", "random-trajectory")


def _spike(trajectory: TrajectorySubject) -> Rise:
    return sudden_rise(trajectory, trajectory.curve(full_prefix_accuracy, kind=Kind.LEFT))


def _height(trajectory: TrajectorySubject) -> Measurement:
    """How much accuracy rises in the spike."""
    start, end, height = _spike(trajectory)
    steps = trajectory.steps
    return exact(height, len(steps), note=f"from step {steps[start]} to {steps[end]}")


def _around(
    measure: Callable[..., Measurement], read: Callable[[float, float], float], **arguments: object
) -> Callable[[TrajectorySubject], Measurement]:
    """A function of a quantity's values before and after the spike; nan where there is no spike."""

    def around(trajectory: TrajectorySubject) -> Measurement:
        start, end, height = _spike(trajectory)
        if height < JUMP:
            return exact(float("nan"), len(trajectory.steps), note="no spike")
        before, after = trajectory.curve(measure, **arguments)[[start, end]]
        return exact(read(before, after), len(trajectory.steps), note=f"{before:.2f} before, {after:.2f} after")

    return around


def _before(before: float, after: float) -> float:
    return before


def _after(before: float, after: float) -> float:
    return after


def _rise(before: float, after: float) -> float:
    return after - before


CLAIMS = (
    Claim(
        id="spike/accuracy-jumps",
        statement="Accuracy with a variable on the left rises by half within a quarter of the steps made so far.",
        paper=PAPER,
        form=Form.LITERAL,
        criterion=Criterion(
            "largest rise of accuracy on full prefixes of 1L in a window of 25 % of the steps at its end",
            _height,
            at_least(JUMP),
        ),
        evidence="authors' run .69 from step 5301 to 5401; lr 3e-3 .73 from 900 to 1200; 1R rises gradually in the "
        "authors' run, so the 1-var pool hides the jump",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="spike/identity-rises",
        statement="The identity block of blocks.1's QK circuit rises with it.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion("rise of the identity block's z over the spike", _around(identity_z, _rise), at_least(0.8)),
        evidence="authors' run 1.17, the largest of all 100-step intervals; lr 3e-3 1.67",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="spike/operands-in-place",
        statement="When it ends, `=` attends in blocks.0 to both operands of 1L.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "mean of the smaller weight of `=` on the two operands after the spike",
            _around(equals_smaller_weight, _after, layer=0, kind=Kind.LEFT),
            at_least(0.18),
        ),
        evidence="authors' run .013 before and .24 after; lr 3e-3 .33 before and .36 after: there it comes earlier",
        broken_by=BROKEN_BY,
        scope=Scope.TRAJECTORY,
    ),
    Claim(
        id="spike/sources-found",
        statement="Over it `=` comes to attend in blocks.1 to both constants that the answer is the sum of.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "rise over the spike of the mean of its smaller weight on the two constants, in 1L",
            _around(equals_smaller_weight, _rise, layer=1, kind=Kind.LEFT),
            at_least(0.05),
        ),
        evidence="authors' run .12 before and .28 after; lr 3e-3 .13 and .23",
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
            _around(previous_token_argmax, _before),
            at_least(0.95),
        ),
        evidence="authors' run 1.000 from step 3201 on; lr 3e-3 1.000 at step 800",
        broken_by=(*BROKEN_BY, "previous-token-late", "all-at-once"),
        scope=Scope.TRAJECTORY,
    ),
)
