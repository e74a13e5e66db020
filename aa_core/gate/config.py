"""What the gate trains and how it decides."""

from __future__ import annotations

from dataclasses import dataclass

from aa_core.errors import InputError


@dataclass(frozen=True)
class GateConfig:
    """The gate's settings.

    Attributes:
        recipe: name of the training recipe.
        seeds: seeds that a check trains, or finds in the run store; six are three rounds on two cores.
        baseline_seeds: seeds of a new baseline. The recipe was chosen on half of them, and does better there
            (docs/seeds.md): against that half alone, good runs of other seeds could look worse.
        alpha: probability of at most which one check raises any false alarm.
        slowdown: factor by which a training step may slow down, measured against its own matrix products.

    Raises:
        InputError: there are too few seeds to tell anything.
    """

    recipe: str = "fast"
    seeds: tuple[int, ...] = tuple(range(6))
    baseline_seeds: tuple[int, ...] = tuple(range(32))
    alpha: float = 0.02
    slowdown: float = 1.5

    def __post_init__(self) -> None:
        for name in ("seeds", "baseline_seeds"):
            if len(getattr(self, name)) < 2:
                raise InputError(f"{name} of the gate are {getattr(self, name)}, expected at least two")
