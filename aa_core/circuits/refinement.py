"""Each letter in each role: which come last, and the one score that holds them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float

from aa_core.circuits.dynamics import TrajectorySubject, first_reached
from aa_core.circuits.interventions import intervened, with_added_score
from aa_core.circuits.subject import DataConfig, Run, Subject
from aa_core.model.parameters import attention_weights
from aa_core.statistics import Measurement, NotApplicable, exact, share
from aa_core.task.sampling import Kind
from aa_core.task.sequences import NO_VARIABLE, Sequences, concatenate, draw_sequences
from aa_core.task.split import Split

PER_LETTER = 250
ASSIGNMENTS = 4
WORKS = 0.9
FAILS = 0.5
# Steps until all letters work over steps until the unrestricted ones do, from which a letter was held back. Measured:
# 2.7 in the paper's own run, 2.1 to 7.8 in five of ours, and 1 to 1.2 in four, where nothing is left to explain.
PLATEAU = 1.5


class Role(NamedTuple):
    """Where a letter stands: the kind of the sequence, and its side (0 left, 1 right)."""

    kind: Kind
    side: int


ONE_VARIABLE = (Role(Kind.LEFT, 0), Role(Kind.RIGHT, 1))
TWO_VARIABLES = (Role(Kind.TWO, 0), Role(Kind.TWO, 1))
SIDES = ("left", "right")


@cache
def letter_sequences(split: Split, role: Role, data: DataConfig) -> Sequences:
    """`PER_LETTER` sequences for each letter in a role, in the order of letters, distinct values, 4 assignments.

    The other operand's letter, if any, is one that training puts there, and its sequences are the same for every model.

    Raises:
        NotApplicable: the task is too small.
    """
    stream = (*ONE_VARIABLE, *TWO_VARIABLES).index(role)
    rng = np.random.default_rng(np.random.Philox(key=np.array([data.seed, 5000 + stream], dtype=np.uint64)))
    return concatenate([_one_letter(split, role, letter, rng) for letter in range(split.task.n_variables)])


def _one_letter(split: Split, role: Role, letter: int, rng: np.random.Generator) -> Sequences:
    variables = np.full((PER_LETTER, 2), NO_VARIABLE)
    variables[:, role.side] = letter
    if role.kind is Kind.TWO:
        others = np.setdiff1d(split.allowed_variables(1 - role.side), [letter])
        variables[:, 1 - role.side] = rng.choice(others, PER_LETTER)
    pairs = split.seen_pairs[split.seen_pairs[:, 0] != split.seen_pairs[:, 1]]
    if not len(pairs) or split.task.modulus < split.task.max_assignments + 2:
        raise NotApplicable("the task has too few constants for sequences whose values all differ")
    n_assignments = np.full(PER_LETTER, min(ASSIGNMENTS, split.task.max_assignments))
    return draw_sequences(
        split.task, rng, rng.choice(pairs, PER_LETTER), variables, n_assignments, distinct_values=True
    )


def _correct(subject: Subject, role: Role) -> Bool[np.ndarray, "letters sequences"]:
    run = subject.run(letter_sequences(subject.split, role, subject.data))
    return run.correct.reshape(-1, PER_LETTER)


def restricted(split: Split, side: int) -> Bool[np.ndarray, " letters"]:
    """Which letters training never puts on a side."""
    return np.isin(np.arange(split.task.n_variables), split.restricted_variables(side))


def least_letter(subject: Subject, roles: Sequence[Role], *, is_restricted: bool) -> Measurement:
    """Least accuracy of a letter in one of the roles.

    Args:
        subject: the model.
        roles: where the letter stands.
        is_restricted: over the letters that training never puts there, or over the others.

    Raises:
        NotApplicable: the split has no such letter.
    """
    found = []
    for role in roles:
        correct = subject.once(_correct, role=role)
        for letter in np.flatnonzero(restricted(subject.split, role.side) == is_restricted):
            name = subject.task.variables[letter]
            found.append((correct[letter].mean(), correct[letter], f"least for {name} on the {SIDES[role.side]}"))
    if not found:
        raise NotApplicable("the split restricts no letter")
    _, hits, note = min(found, key=lambda each: each[0])
    return share(hits, note=note)


def letter_run(subject: Subject, letter: int, side: int) -> Run:
    """The 1-variable sequences of a letter on a side."""
    sequences = letter_sequences(subject.split, ONE_VARIABLE[side], subject.data)
    return subject.run(sequences[slice(letter * PER_LETTER, (letter + 1) * PER_LETTER)])


def letter_accuracy(subject: Subject, letter: int, side: int) -> Measurement:
    """Accuracy of a letter on a side in 1-variable sequences."""
    return share(letter_run(subject, letter, side).correct)


def score_gaps(subject: Subject) -> Float[np.ndarray, " letters"]:
    """blocks.0 score (nats) of `=` at the last position against each letter, less its mean over unrestricted letters.

    `(W_E[=] + W_pos[last]) W_Q W_K^T W_E[letter]^T / sqrt(d_head)`; the key's position adds the same to every letter.
    """
    task = subject.task
    q, k, _, _ = attention_weights(subject.parameters, 0)
    query = subject.parameters["embed.W_E"][task.equals_token] + subject.parameters["pos_embed.W_pos"][-1]
    scores = (subject.variable_embeddings() @ k @ (query @ q) / q.shape[1] ** 0.5).double().numpy()
    free = ~(restricted(subject.split, 0) | restricted(subject.split, 1))
    return scores - scores[free].mean() if free.any() else np.full_like(scores, np.nan)


def least_score_gap(subject: Subject) -> Measurement:
    """Least `score_gaps` of a letter that training restricts.

    Raises:
        NotApplicable: the split restricts no letter, or every one.
    """
    held = restricted(subject.split, 0) | restricted(subject.split, 1)
    if held.all() or not held.any():
        raise NotApplicable("the split does not restrict some letters and leave others")
    gaps = np.where(held, score_gaps(subject), np.inf)
    return exact(gaps.min(), int(held.sum()), note=f"least for {subject.task.variables[gaps.argmin()]}")


def raised_score_accuracy(subject: Subject, letter: int, side: int, operand: int) -> Measurement:
    """`letter_accuracy` with the letter's score gap made up in one blocks.0 score: that of `=` against an operand.

    Args:
        subject: the model.
        letter: the letter.
        side: side of the letter.
        operand: side of the operand whose score is raised; the one that is not the letter's is the control.
    """
    added = torch.zeros(subject.task.n_ctx, subject.task.n_ctx)
    added[-1, subject.task.left_position + operand] = -float(score_gaps(subject)[letter])
    edited = intervened(
        subject, letter_run(subject, letter, side), pattern0=lambda pattern: with_added_score(pattern, added)
    )
    return share(edited.correct.numpy())


class Held(NamedTuple):
    """A letter that a model fails on while those that training does not restrict work.

    Attributes:
        checkpoint: index of the checkpoint.
        letter: the letter.
        side: where training never puts it.
    """

    checkpoint: int
    letter: int
    side: int


def last_held_letter(trajectory: TrajectorySubject) -> Held | None:
    """The last such letter before all letters work, or None where the unrestricted letters never work.

    Raises:
        NotApplicable: there is no such checkpoint, all letters work before `PLATEAU` times the steps that the
            unrestricted ones take, letters fail to the end, or the split restricts no letter.
    """
    others = trajectory.curve(least_letter, roles=ONE_VARIABLE, is_restricted=False)
    if (others < WORKS).all():
        return None
    all_work = first_reached(trajectory.curve(least_letter, roles=ONE_VARIABLE, is_restricted=True), WORKS)
    if all_work is None:
        raise NotApplicable("some restricted letter fails to the end, so the last one to work is not known")
    others_work, steps = first_reached(others, WORKS), trajectory.steps
    assert others_work is not None, "some of them works"
    if steps[all_work] < PLATEAU * steps[others_work]:
        raise NotApplicable(
            f"all letters work at step {steps[all_work]}, soon after the unrestricted ones at step "
            f"{steps[others_work]}: none is held back"
        )
    split = trajectory.final.split
    curves = {
        (letter, side): trajectory.curve(letter_accuracy, letter=letter, side=side)
        for side in (0, 1)
        for letter in split.restricted_variables(side).tolist()
    }
    for index in reversed(range(all_work)):
        (letter, side), curve = min(curves.items(), key=lambda item: item[1][index])
        if others[index] >= WORKS and curve[index] <= FAILS:
            return Held(index, letter, side)
    raise NotApplicable("no checkpoint at which a restricted letter fails while the others work")


def raised_score_of_held_letter(trajectory: TrajectorySubject, *, control: bool = False) -> Measurement:
    """Accuracy of the last held letter with the score of its own operand raised, or for the `control` the other's.

    nan where the unrestricted letters never work.

    Raises:
        NotApplicable: as `last_held_letter`.
    """
    held = last_held_letter(trajectory)
    if held is None:
        return exact(float("nan"), note="the unrestricted letters never work")
    subject, operand = trajectory.subjects[held.checkpoint], 1 - held.side if control else held.side
    raised = raised_score_accuracy(subject, held.letter, held.side, operand)
    as_it_is = letter_accuracy(subject, held.letter, held.side).value
    name, step = subject.task.variables[held.letter], trajectory.steps[held.checkpoint]
    return replace(raised, note=f"{name} on the {SIDES[held.side]} at step {step}, {as_it_is:.2f} as it is")
