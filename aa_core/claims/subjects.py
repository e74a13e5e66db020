"""From loaded checkpoints to what claims are judged on."""

from __future__ import annotations

from aa_core.checkpoints import Checkpoint, Trajectory
from aa_core.circuits.subject import Subject
from aa_core.claims.verification import TrajectorySubject


def as_subject(loaded: Checkpoint | Trajectory) -> Subject | TrajectorySubject:
    """The model of a checkpoint, or the models of a trajectory; a final checkpoint without a step follows the rest."""
    if isinstance(loaded, Checkpoint):
        return Subject(loaded.parameters, loaded.split)
    steps = [checkpoint.step for checkpoint in loaded if checkpoint.step is not None]
    if len(steps) < len(loaded):
        steps.append(max(steps, default=-1) + 1)
    return TrajectorySubject(
        tuple(steps), tuple(Subject(checkpoint.parameters, checkpoint.split) for checkpoint in loaded)
    )
