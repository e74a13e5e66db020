"""What a check of the gate found, and whether that is a regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aa_core.gate.comparison import Change, Effect, centre
from aa_core.gate.invariant import Outcome


@dataclass(frozen=True)
class Throughput:
    """Time of a training step in units of its own matrix products, in the baseline and now.

    Attributes:
        before: in the baseline.
        after: now.
        slowdown: the factor between them that is still accepted.
    """

    before: float
    after: float
    slowdown: float

    @property
    def ok(self) -> bool:
        """Whether training is not slower than accepted."""
        return self.after <= self.slowdown * self.before

    def __str__(self) -> str:
        change, limit = self.after / self.before - 1, self.slowdown - 1
        return f"a training step takes {self.after:.2f} times its matrix products, {change:+.0%} (limit {limit:+.0%})"


@dataclass(frozen=True)
class GateResult:
    """Everything that a check found; what was not done is empty.

    Attributes:
        recipe: name of the recipe.
        code: hash of the training code.
        outcomes: of the invariants.
        failures: why a seed gave no run, a line each.
        effects: quantities of the runs against the baseline.
        throughput: None where it was not measured.
        notes: what a reader should know besides.
        accepted: what was written as the new baseline, where one was.
        lost: claims of the baseline that cannot be judged any more, a line each.
    """

    recipe: str
    code: str
    outcomes: Sequence[Outcome] = ()
    failures: Sequence[str] = ()
    effects: Sequence[Effect] = ()
    throughput: Throughput | None = None
    notes: Sequence[str] = ()
    accepted: str = ""
    lost: Sequence[str] = ()

    @property
    def moved_invariants(self) -> list[Outcome]:
        """Invariants that do not hold."""
        return [outcome for outcome in self.outcomes if not outcome.ok]

    def changed(self, change: Change) -> list[Effect]:
        """Effects with a verdict."""
        return [effect for effect in self.effects if effect.change is change]

    @property
    def ok(self) -> bool:
        """Whether there is no regression."""
        slower = self.throughput is not None and not self.throughput.ok
        return not (self.moved_invariants or self.failures or self.lost or self.changed(Change.REGRESSION) or slower)


def effect_record(effect: Effect) -> dict[str, Any]:
    """An effect as plain data; values that are not finite become null."""
    quantity = effect.quantity
    return {
        "quantity": quantity.name,
        "kind": quantity.kind.value,
        "change": effect.change.value,
        "before": _finite(centre(quantity, effect.before)),
        "after": _finite(centre(quantity, effect.after)),
        "p": effect.test.p,
        "adjusted_p": effect.adjusted_p,
        "testable": effect.testable,
        "values_before": list(map(_finite, effect.before)),
        "values_after": list(map(_finite, effect.after)),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
