"""Controls that break binding: where attention goes, and what it carries there."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from aa_core.circuits.subject import Subject
from aa_core.controls.control import Control
from aa_core.controls.edits import derangement, edited, orthogonal, shifted_scores
from aa_core.model.parameters import Parameters, attention_weights

OFF = -20.0  # nats added to a score: leaves an edge no weight


def uniform_attention_0(subject: Subject, seed: int) -> Parameters:
    """W_Q of blocks.0 set to 0: every row of its pattern is uniform over the tokens so far."""
    return edited(subject.parameters, W_Q0=torch.zeros_like(attention_weights(subject.parameters, 0)[0]))


def _positions_permuted(subject: Subject, seed: int) -> Parameters:
    rng, prefix = np.random.default_rng(seed), subject.task.prefix_length
    order = derangement(prefix, rng)
    while (np.diff(order) == 1).any():  # no position may keep its predecessor
        order = derangement(prefix, rng)
    positions = subject.parameters["pos_embed.W_pos"].clone()
    positions[:prefix] = positions[order]
    return edited(subject.parameters, W_pos=positions)


def _letter(subject: Subject, seed: int, n: int = 1) -> np.ndarray:
    """Letters that training puts on the left, so that the kinds 1L and 2-var depend on them."""
    return np.random.default_rng(seed).choice(subject.split.allowed_variables(0), n, replace=False)


def _letters_unbound(subject: Subject, letters: np.ndarray) -> Parameters:
    task = subject.task
    return shifted_scores(subject.parameters, np.arange(task.modulus), letters + task.first_variable_token, OFF)


def _one_letter_unbound(subject: Subject, seed: int) -> Parameters:
    return _letters_unbound(subject, _letter(subject, seed))


def _one_letter_bound(subject: Subject, seed: int) -> Parameters:
    return _letters_unbound(subject, np.delete(np.arange(subject.task.n_variables), _letter(subject, seed)))


def _one_position_unbound(subject: Subject, seed: int) -> Parameters:
    task = subject.task
    constant = 2 * np.random.default_rng(seed).integers(task.max_assignments) + 1  # odd: full prefixes use them all
    query, key = task.d_vocab + np.array([[constant], [constant - 1]])
    return shifted_scores(subject.parameters, query, key, OFF)


def _equals_ignores(subject: Subject, position: int) -> Parameters:
    task = subject.task
    query, key = task.d_vocab + np.array([[task.equals_position], [position]])
    return shifted_scores(subject.parameters, query, key, OFF)


def _equals_ignores_left(subject: Subject, seed: int) -> Parameters:
    return _equals_ignores(subject, subject.task.left_position)


def _equals_ignores_right(subject: Subject, seed: int) -> Parameters:
    return _equals_ignores(subject, subject.task.right_position)


def _restricted_letters_unseen(subject: Subject, seed: int) -> Parameters:
    task, split = subject.task, subject.split
    letters = np.union1d(split.restricted_variables(0), split.restricted_variables(1))
    return shifted_scores(subject.parameters, np.array([task.equals_token]), letters + task.first_variable_token, OFF)


def _ov0_without_variables(subject: Subject, seed: int) -> Parameters:
    embeddings = subject.variable_embeddings().double()
    _, singular, directions = torch.linalg.svd(embeddings - embeddings.mean(0), full_matrices=False)
    directions = directions[singular > 1e-9 * singular.max()]
    value = attention_weights(subject.parameters, 0)[2].double()
    return edited(subject.parameters, W_V0=value - directions.T @ (directions @ value))


def _with_variables(subject: Subject, embeddings: Tensor) -> Parameters:
    embed = subject.parameters["embed.W_E"].clone()
    embed[subject.task.first_variable_token :] = embeddings
    return edited(subject.parameters, W_E=embed)


def _variables_equal(subject: Subject, seed: int) -> Parameters:
    embeddings = subject.variable_embeddings()
    return _with_variables(subject, embeddings.mean(0).expand_as(embeddings))


def _letters_merged(subject: Subject, seed: int) -> Parameters:
    pair = _letter(subject, seed, 2)
    embeddings = subject.variable_embeddings().clone()
    embeddings[pair] = embeddings[pair].mean(0)
    return _with_variables(subject, embeddings)


def _variables_permuted(subject: Subject, seed: int) -> Parameters:
    order = derangement(subject.task.n_variables, np.random.default_rng(seed))
    return _with_variables(subject, subject.variable_embeddings()[order])


def _qk1_rotated(subject: Subject, seed: int) -> Parameters:
    key = attention_weights(subject.parameters, 1)[1].double()
    return edited(subject.parameters, W_K1=key @ orthogonal(key.shape[1], np.random.default_rng(seed)))


def _qk1_rows_shuffled(subject: Subject, seed: int) -> Parameters:
    key = attention_weights(subject.parameters, 1)[1]
    return edited(subject.parameters, W_K1=key[derangement(len(key), np.random.default_rng(seed))])


ADDITION = ("fourier", "gradient")

CONTROLS = (
    Control(
        "uniform-attention-0",
        "blocks.0 attends uniformly (W_Q = 0), so nothing says which constant belongs to which variable.",
        uniform_attention_0,
        spares=ADDITION,
    ),
    Control(
        "positions-permuted",
        "Embeddings of the prefix's positions are permuted and none keeps its predecessor: the previous-token head "
        "looks elsewhere.",
        _positions_permuted,
        spares=ADDITION,
    ),
    Control(
        "one-letter-bound",
        "In blocks.0 constants give no weight to any variable but one, so the head binds that letter alone.",
        _one_letter_bound,
        spares=ADDITION,
    ),
    Control(
        "one-letter-unbound",
        "In blocks.0 constants give no weight to one variable: a mean over letters hardly sees it.",
        _one_letter_unbound,
        spares=("qk-identity", *ADDITION),
    ),
    Control(
        "one-position-unbound",
        "In blocks.0 one position gives no weight to the one before it: a mean over positions hardly sees it.",
        _one_position_unbound,
        spares=ADDITION,
    ),
    Control(
        "equals-ignores-left",
        "In blocks.0 `=` gives no weight to the left operand, so a variable there is never looked up.",
        _equals_ignores_left,
        spares=("previous-token", "qk-identity", *ADDITION),
    ),
    Control(
        "equals-ignores-right",
        "In blocks.0 `=` gives no weight to the right operand, so a variable there is never looked up.",
        _equals_ignores_right,
        spares=("previous-token", "qk-identity", *ADDITION),
    ),
    Control(
        "restricted-letters-unseen",
        "In blocks.0 `=` gives no weight to the letters that training keeps off one side: the rest still binds.",
        _restricted_letters_unseen,
        spares=("previous-token", "qk-identity", *ADDITION),
    ),
    Control(
        "ov0-without-variables",
        "The centred variable embeddings are projected out of what blocks.0's W_V reads, so no identity is carried.",
        _ov0_without_variables,
        spares=("previous-token", *ADDITION),
    ),
    Control(
        "variables-equal",
        "All variable embeddings are their mean, so there is no identity to carry or to match.",
        _variables_equal,
        spares=("previous-token", *ADDITION),
    ),
    Control(
        "letters-merged",
        "Two variable embeddings are their mean, so these letters are one: a mean over letters hardly sees it.",
        _letters_merged,
        spares=("previous-token", *ADDITION),
    ),
    Control(
        "qk1-rotated",
        "Keys of blocks.1 are turned by a random rotation, so queries no longer match them.",
        _qk1_rotated,
        spares=("previous-token", "gradient"),
    ),
    Control(
        "qk1-rows-shuffled",
        "Input rows of blocks.1's W_K are permuted: the same numbers, matched to other residual directions.",
        _qk1_rows_shuffled,
        spares=("previous-token", "gradient"),
    ),
    Control(
        "variables-permuted",
        "Variable embeddings are permuted: other names for the same letters, which breaks nothing once every letter "
        "is bound on both sides.",
        _variables_permuted,
        harmless=True,
    ),
)
