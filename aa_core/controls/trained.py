"""Models whose training went wrong: what a broken model looks like when nobody broke it by hand."""

from __future__ import annotations

from dataclasses import replace

from aa_core.controls.control import TrainedControl
from aa_core.task.split import SplitConfig
from aa_core.training.recipes import RECIPES

CONTROLS: tuple[TrainedControl, ...] = (
    TrainedControl(
        "trained-on-addition-alone",
        "Trained on sums of two constants alone, so nothing is ever looked up.",
        replace(RECIPES["fast"], split=SplitConfig(one_variable_frequency=0.0, two_variable_frequency=0.0)),
        breaks=(),
        spares=(),
    ),
    TrainedControl(
        "trained-on-few-pairs",
        "Trained on a tenth of all pairs, which it memorises: the others are not answered.",
        replace(RECIPES["fast"], split=SplitConfig(train_fraction=0.1)),
        breaks=(),
        spares=(),
    ),
)
