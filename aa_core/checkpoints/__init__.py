"""Checkpoint files of any origin, in and out."""

from aa_core.checkpoints.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, weights_sha256
from aa_core.checkpoints.trajectory import Trajectory, load_subject, load_trajectory

__all__ = [
    "Checkpoint",
    "Trajectory",
    "load_checkpoint",
    "load_subject",
    "load_trajectory",
    "save_checkpoint",
    "weights_sha256",
]
