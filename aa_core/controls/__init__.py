"""Models and trajectories made from good ones: those that claims must fail, and those that may change no verdict."""

from aa_core.controls.control import Control, Symmetry, TrajectoryControl
from aa_core.controls.matrix import ControlMatrix, control_matrix, matrix_faults, write_matrix
from aa_core.controls.registry import CONTROLS, TRAJECTORY_CONTROLS
from aa_core.controls.symmetries import SYMMETRIES

__all__ = [
    "CONTROLS",
    "SYMMETRIES",
    "TRAJECTORY_CONTROLS",
    "Control",
    "ControlMatrix",
    "Symmetry",
    "TrajectoryControl",
    "control_matrix",
    "matrix_faults",
    "write_matrix",
]
