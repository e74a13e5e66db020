"""Models whose training went wrong: what a broken model looks like when nobody broke it by hand."""

from __future__ import annotations

from dataclasses import replace

from aa_core.controls.control import TrainedControl
from aa_core.task.split import SplitConfig
from aa_core.training.config import TrainConfig
from aa_core.training.recipes import RECIPES

SHORT = TrainConfig(steps=10_000, learning_rate=3e-3, decay_steps=3_000)

CONTROLS: tuple[TrainedControl, ...] = (
    TrainedControl(
        "trained-on-addition-alone",
        "10,000 steps at 3e-3 on sums of two constants alone: it adds any two, and never had to look anything up.",
        replace(SHORT, split=SplitConfig(one_variable_frequency=0.0, two_variable_frequency=0.0)),
        breaks=(
            *("accuracy/1L", "accuracy/1R", "accuracy/2-var", "order", "refinement", "previous-token", "qk-identity"),
            *("shared-representation", "probes", "gradient", "causal", "circuit"),
            *("generalisation/1-var-held-out", "generalisation/2-var-held-out"),
        ),
        spares=(
            *("accuracy/0-var", "generalisation/0-var-held-out", "generalisation/0-var-held-out-off-diagonal"),
            *("fourier/weighted-r2", "fourier/single-frequency-is-enough", "fourier/output-phase"),
        ),
    ),
    TrainedControl(
        "trained-on-few-pairs",
        "10,000 steps at 3e-3 on a tenth of all pairs: it memorises their sums, and binds.",
        replace(SHORT, split=SplitConfig(train_fraction=0.1)),
        breaks=(
            *("fourier", "addition/table", "addition/margin"),
            *("generalisation/0-var-held-out", "generalisation/0-var-held-out-off-diagonal"),
            *("generalisation/1-var-held-out", "generalisation/2-var-held-out"),
        ),
        spares=("accuracy/0-var", "previous-token", "probes/variable-at-its-constant", "gradient"),
    ),
    TrainedControl(
        "trained-letters-alike",
        "8,000 steps of the recipe `paper` with seed 3: a and b fell together, k is not bound, the others are.",
        replace(RECIPES["paper"], seed=3, steps=8_000),
        breaks=(
            *("accuracy/1L", "accuracy/2-var", "order", "refinement", "qk-identity", "generalisation/2-var-seen"),
            *("shared-representation/retrieval-1L", "shared-representation/retrieval-2-var"),
        ),
        spares=("accuracy/0-var", "previous-token", "fourier", "gradient", "probes/variable-at-its-constant"),
    ),
)
