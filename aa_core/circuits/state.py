"""What a model has learned so far, in one word, and the measurements that say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from aa_core.circuits.accuracy import full_prefix_accuracy, held_out_zero_variable, seen_zero_variable
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.refinement import ONE_VARIABLE, TWO_VARIABLES, least_letter
from aa_core.circuits.subject import Subject
from aa_core.model.parameters import attention_weights
from aa_core.statistics import Measurement, Threshold, at_least, exact
from aa_core.task.sampling import Kind
from aa_core.task.split import Split

Observe = Callable[..., float]
"""`observe(measure, **arguments)`: the value of `measure(subject, **arguments)`."""


class State(StrEnum):
    """What a model has learned, in the order of learning; `stuck` is where some runs leave it.

    Attributes:
        UNTRAINED: it does not add the constant pairs of training.
        MEMORISING: it adds those, and not the pairs held out.
        ADDS: it adds any two constants, and takes the value of a variable from no assignment in particular.
        BINDS: it looks up variables, though not yet in every kind of sequence.
        COMPOSES: it looks up one variable or two and adds, with letters where training puts them.
        REFINED: it does so with letters where training never puts them, too.
        STUCK: it adds, and `blocks.0` writes the same for every variable, so that there is nothing to look up.
    """

    UNTRAINED = "untrained"
    MEMORISING = "memorising"
    ADDS = "adds"
    BINDS = "adds, binding"
    COMPOSES = "composes"
    REFINED = "refined"
    STUCK = "stuck: variables collapsed"


@dataclass(frozen=True)
class Evidence:
    """A measurement that a state rests on.

    Attributes:
        quantity: what is measured.
        value: the value.
        threshold: what it was compared with; which side it is on decided.
    """

    quantity: str
    value: float
    threshold: Threshold

    @property
    def met(self) -> bool:
        """Whether the value satisfies the threshold."""
        return self.threshold.accepts(self.value)


@dataclass(frozen=True)
class Diagnosis:
    """The state of a model.

    Attributes:
        state: the state.
        evidence: what was asked of the model, in order, up to what decided.
    """

    state: State
    evidence: tuple[Evidence, ...]


# Shares of the way from guessing to all right, measured over the authors' run, paper seeds 0, 2, 42 and 0 to 4 at 3e-3.
# Held out in both orders: a symmetric table of sums is near 0, the authors' run at .39 at step 501 and .85 at 2001.
HALF = 0.5
# Before binding 1L and 1R reach .27, .12 of the way: some assignments are likelier than others.
BEGUN = 0.25
# 2-var dips to .88 of the way late.
SOLVED = 0.85
# Least `variable_spread` that is no collapse. Just before binding it dips to .355 at least in 21 runs that bind (paper
# seeds 0 to 3 and 5, fast 0 to 15) and is 1.31 to 1.46 once they compose. Paper seeds 4 and 11, which never bind, are
# at .23 to .33 and .21 to .31 from step 12,000 on; seed 10 is at .34 at least for 12,000 steps, and then comes free.
# Models whose variables were made alike are at 0 to .08.
SPREAD = 0.33

USED = {Kind.LEFT: 1, Kind.RIGHT: 1, Kind.TWO: 2}  # assignments that the answer needs
# What the claims on restricted letters ask of the worst of them. A mean over letters would hide one: b on the right is
# at .48 in 2-var at step 15501 of the authors' run, where the pool with one restricted letter is at .89.
LETTERS = {"1-var": (ONE_VARIABLE, 0.85), "2-var": (TWO_VARIABLES, 0.75)}


def variable_spread(subject: Subject) -> Measurement:
    """How far apart blocks.0 writes variables: mean distance of their OV images, relative to their mean norm.

    About 1.41 (the square root of 2) for unrelated images, 0 for equal ones. Over the letters that training puts on
    both sides; the others are told apart by where they stand, too.
    """
    _, _, v, o = attention_weights(subject.parameters, 0)
    return _spread(_alike(subject) @ v.double() @ o.double())


def embedding_spread(subject: Subject) -> Measurement:
    """As `variable_spread`, of the variable embeddings themselves."""
    return _spread(_alike(subject))


def _alike(subject: Subject) -> Float[Tensor, "letters d_model"]:
    return subject.variable_embeddings()[unrestricted_letters(subject.split)].double()


def _spread(vectors: Float[Tensor, "letters d_model"]) -> Measurement:
    n, norm = len(vectors), max(float(vectors.norm(dim=1).mean()), np.finfo(float).tiny)
    distances = (vectors[:, None] - vectors).norm(dim=2)
    return exact(float(distances.sum()) / (n * (n - 1)) / norm, n)


def unrestricted_letters(split: Split) -> Int[np.ndarray, " letters"]:
    """Letters allowed on both sides, or all where fewer than two are."""
    letters = np.intersect1d(split.allowed_variables(0), split.allowed_variables(1))
    return letters if len(letters) > 1 else np.arange(split.task.n_variables)


def diagnose(subject: Subject) -> Diagnosis:
    """The state of a model. Works for every task and split; what these leave no room for is not asked."""
    return diagnosis(subject.split, lambda measure, **arguments: measure(subject, **arguments).value)


def diagnose_each(trajectory: TrajectorySubject) -> tuple[Diagnosis, ...]:
    """The state at every step of a training run."""

    def at(index: int) -> Observe:
        return lambda measure, **arguments: float(trajectory.curve(measure, **arguments)[index])

    return tuple(diagnosis(subject.split, at(index)) for index, subject in enumerate(trajectory.subjects))


def first_steps(steps: Sequence[int | None], diagnoses: Sequence[Diagnosis]) -> dict[str, int | None]:
    """The first step at which a training run is in each state that it reaches, in order of steps."""
    first: dict[str, int | None] = {}
    for step, diagnosis in zip(steps, diagnoses, strict=True):
        first.setdefault(diagnosis.state.value, step)
    return first


def diagnosis(split: Split, observe: Observe) -> Diagnosis:
    """The state that measurements speak for, asked for one after the other until they decide."""
    ladder = _Ladder(observe)
    return Diagnosis(_state(split, ladder), tuple(ladder.evidence))


class _Ladder:
    """Asks one thing after the other and keeps what it found."""

    def __init__(self, observe: Observe) -> None:
        self.observe = observe
        self.evidence: list[Evidence] = []

    def reaches(self, quantity: str, bound: float, measure: Callable[..., Measurement], **arguments: Any) -> bool:
        self.evidence.append(Evidence(quantity, self.observe(measure, **arguments), at_least(bound)))
        return self.evidence[-1].met


def _state(split: Split, ladder: _Ladder) -> State:
    chance = 1 / split.task.modulus
    if not ladder.reaches("0-var, pairs of training", _way(HALF, chance), seen_zero_variable):
        return State.UNTRAINED
    if (~split.seen & ~split.seen.T).any() and not ladder.reaches(
        "0-var, pairs held out in both orders", _way(HALF, chance), held_out_zero_variable, part="both-orders"
    ):
        return State.MEMORISING
    kinds = _binding_kinds(split)
    solved = [
        ladder.reaches(f"{kind} solved", _way(SOLVED, at_random), full_prefix_accuracy, kind=kind)
        for kind, at_random in kinds.items()
    ]
    if not kinds:
        return State.ADDS
    if all(solved):
        return _composed(split, ladder)
    if _trains_binding(split) and not ladder.reaches("spread of the variables", SPREAD, variable_spread):
        return State.STUCK
    begun = [
        ladder.reaches(f"{kind} begun", _way(BEGUN, at_random), full_prefix_accuracy, kind=kind)
        for kind, at_random in kinds.items()
    ]
    return State.BINDS if any(begun) else State.ADDS


def _composed(split: Split, ladder: _Ladder) -> State:
    if not any(len(split.restricted_variables(side)) for side in (0, 1)):
        return State.COMPOSES
    works = [
        ladder.reaches(f"least restricted letter, {kinds}", bound, least_letter, roles=roles, is_restricted=True)
        for kinds, (roles, bound) in LETTERS.items()
    ]
    return State.REFINED if all(works) else State.COMPOSES


def _way(part: float, baseline: float) -> float:
    """The accuracy that is `part` of the way from a baseline to 1, to three digits."""
    return round(baseline + part * (1 - baseline), 3)


def _trains_binding(split: Split) -> bool:
    return split.config.one_variable_frequency + split.config.two_variable_frequency > 0


def _binding_kinds(split: Split) -> dict[Kind, float]:
    """Kinds whose full prefixes tell binding from picking assignments at random, with the accuracy of the latter."""
    n = split.task.max_assignments
    distinct = (split.seen_pairs[:, 0] != split.seen_pairs[:, 1]).any()
    if split.task.modulus < n + 2 or not distinct:
        return {}
    return {kind: 1 / comb(n, used) for kind, used in USED.items() if comb(n, used) > 1}
