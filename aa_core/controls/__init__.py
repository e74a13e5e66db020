"""Models and trajectories made from good ones: those that claims must fail, and those that may change no verdict."""

from aa_core.controls.control import Control, Symmetry, TrainedControl, TrajectoryControl
from aa_core.controls.matrix import ControlMatrix, control_matrix, matrix_faults, write_matrix
from aa_core.controls.registry import BREAKING_CONTROLS, CONTROLS, TRAINED_CONTROLS, TRAJECTORY_CONTROLS
from aa_core.controls.symmetries import SYMMETRIES

__all__ = [
    "BREAKING_CONTROLS",
    "CONTROLS",
    "SYMMETRIES",
    "TRAINED_CONTROLS",
    "TRAJECTORY_CONTROLS",
    "Control",
    "ControlMatrix",
    "Symmetry",
    "TrainedControl",
    "TrajectoryControl",
    "control_matrix",
    "matrix_faults",
    "write_matrix",
]
