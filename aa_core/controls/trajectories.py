"""Trajectories without the order, or without the jumps, of a good one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from aa_core.circuits.accuracy import full_prefix_accuracy
from aa_core.circuits.dynamics import TrajectorySubject, first_reached
from aa_core.circuits.subject import Subject
from aa_core.controls.binding import uniform_attention_0
from aa_core.controls.control import TrajectoryControl
from aa_core.controls.edits import derangement
from aa_core.controls.untrained import random_weights
from aa_core.model.parameters import Parameters
from aa_core.task.sampling import Kind


def _trajectory(trajectory: TrajectorySubject, subjects: Sequence[Subject]) -> TrajectorySubject:
    return TrajectorySubject(trajectory.steps, tuple(subjects))


def _changed(subject: Subject, parameters: Parameters) -> Subject:
    return dataclasses.replace(subject, parameters=parameters)


def _n_before_composing(trajectory: TrajectorySubject) -> int:
    """How many models come before the first that answers 95 % of 2-var full prefixes."""
    first = first_reached(trajectory.curve(full_prefix_accuracy, kind=Kind.TWO))
    return len(trajectory.steps) if first is None else first


def _random_trajectory(trajectory: TrajectorySubject, seed: int) -> TrajectorySubject:
    seeds = np.random.default_rng(seed).integers(2**31, size=len(trajectory.steps)).tolist()
    pairs = zip(trajectory.subjects, seeds, strict=True)
    return _trajectory(trajectory, [_changed(subject, random_weights(subject, seed)) for subject, seed in pairs])


def _reversed_trajectory(trajectory: TrajectorySubject, seed: int) -> TrajectorySubject:
    return _trajectory(trajectory, trajectory.subjects[::-1])


def _shuffled_trajectory(trajectory: TrajectorySubject, seed: int) -> TrajectorySubject:
    order = derangement(len(trajectory.steps), np.random.default_rng(seed))
    return _trajectory(trajectory, [trajectory.subjects[i] for i in order])


def _constant_trajectory(trajectory: TrajectorySubject, seed: int) -> TrajectorySubject:
    return _trajectory(trajectory, [trajectory.final] * len(trajectory.steps))


def _all_at_once(trajectory: TrajectorySubject, seed: int) -> TrajectorySubject:
    n = _n_before_composing(trajectory)
    first = trajectory.subjects[0]
    return _trajectory(trajectory, [first] * n + [trajectory.final] * (len(trajectory.steps) - n))


def _never_binds(trajectory: TrajectorySubject, seed: int) -> TrajectorySubject:
    return _trajectory(
        trajectory, [_changed(subject, uniform_attention_0(subject, seed)) for subject in trajectory.subjects]
    )


def _previous_token_late(trajectory: TrajectorySubject, seed: int) -> TrajectorySubject:
    n = _n_before_composing(trajectory)
    early = [_changed(subject, uniform_attention_0(subject, seed)) for subject in trajectory.subjects[:n]]
    return _trajectory(trajectory, [*early, *trajectory.subjects[n:]])


CONTROLS = (
    TrajectoryControl(
        "random-trajectory", "A fresh random model at each step: nothing is learned.", _random_trajectory
    ),
    TrajectoryControl(
        "reversed-trajectory", "The models in reverse order: everything is unlearned.", _reversed_trajectory
    ),
    TrajectoryControl("shuffled-trajectory", "The models in random order: no order of learning.", _shuffled_trajectory),
    TrajectoryControl("constant-trajectory", "The last model at each step: nothing comes first.", _constant_trajectory),
    TrajectoryControl(
        "all-at-once",
        "The first model until the original composes two variables, then the last: all is learned in one jump.",
        _all_at_once,
    ),
    TrajectoryControl(
        "never-binds", "blocks.0 attends uniformly in every model: addition is learned, binding never.", _never_binds
    ),
    TrajectoryControl(
        "previous-token-late",
        "blocks.0 attends uniformly until the original composes two variables: the head appears with the spike.",
        _previous_token_late,
    ),
)
