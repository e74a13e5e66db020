"""All controls by name."""

from __future__ import annotations

from collections.abc import Mapping

from aa_core.controls import addition, binding, trajectories, untrained
from aa_core.controls.control import Control, TrajectoryControl

CONTROLS: Mapping[str, Control] = {
    control.name: control for control in (*binding.CONTROLS, *addition.CONTROLS, *untrained.CONTROLS)
}

TRAJECTORY_CONTROLS: Mapping[str, TrajectoryControl] = {control.name: control for control in trajectories.CONTROLS}
