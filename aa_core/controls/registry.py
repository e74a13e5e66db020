"""All controls by name."""

from __future__ import annotations

from collections.abc import Mapping

from aa_core.controls import addition, binding, trained, trajectories, untrained
from aa_core.controls.control import Control, TrainedControl, TrajectoryControl

CONTROLS: Mapping[str, Control] = {
    control.name: control for control in (*binding.CONTROLS, *addition.CONTROLS, *untrained.CONTROLS)
}

TRAINED_CONTROLS: Mapping[str, TrainedControl] = {control.name: control for control in trained.CONTROLS}

TRAJECTORY_CONTROLS: Mapping[str, TrajectoryControl] = {control.name: control for control in trajectories.CONTROLS}

BREAKING_CONTROLS: Mapping[str, Control | TrainedControl | TrajectoryControl] = {
    **CONTROLS,
    **TRAINED_CONTROLS,
    **TRAJECTORY_CONTROLS,
}
