"""The gradient that pulls blocks.1's QK circuit towards the identity on variables.

Add `q M k` to the blocks.1 score of every key, with M = 0. Its gradient says which entries of the identity block the
next update raises, at whatever weights the model has. What is called q and k matters:

* In *code* space q is 1/2 for each variable operand and k is 1 for the variable just before an assigned constant: what
  blocks.0 will deliver once it attends to the right places. There -dL/dM is an identity from early in training on.
* In the model's own residual stream, with q and k projected on what blocks.0 writes for each variable (so that
  -dL/dM = V (-dL/dA) V^T for A = W_Q W_K^T), nothing shows at any time: the rows of V share a large mean and are not
  orthogonal. `naive_z` measures this form; no claim is made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from aa_core.circuits.accuracy import full_prefix_accuracy
from aa_core.circuits.dynamics import TrajectorySubject, first_reached
from aa_core.circuits.identity import diagonal_argmax, diagonal_z
from aa_core.circuits.interventions import Stream, intervened, symbols, with_added_score
from aa_core.circuits.subject import Run, Subject
from aa_core.statistics import Measurement, NotApplicable, exact
from aa_core.task.config import TaskConfig
from aa_core.task.sampling import Kind
from aa_core.task.sequences import NO_VARIABLE, Sequences
from aa_core.task.split import Split
from aa_core.task.training_data import training_batch

ADDS = 0.9  # 0-var accuracy from which a model adds
BINDS = 0.3  # accuracy with variables from which binding has begun; a model that binds at random has 1/6 at most


class Codes(NamedTuple):
    """How much of each variable the query at `=` and every key carry."""

    queries: Float[Tensor, "n variables"]
    keys: Float[Tensor, "n n_ctx variables"]


class Pull(NamedTuple):
    """-dL/dM for the mean cross-entropy L of the batch, and for the batch with its answers shuffled."""

    answers: Float[np.ndarray, "variables variables"]
    shuffled: Float[np.ndarray, "variables variables"]


def training_run(subject: Subject) -> Run:
    """The run on one batch of the training law at the paper's frequencies of kinds, whatever the run's."""
    config = replace(subject.split.config, one_variable_frequency=1.0, two_variable_frequency=1.0)
    split = Split(subject.task, config)
    return subject.run(training_batch(split, subject.data.seed, 0, subject.data.gradient))


def ideal_codes(task: TaskConfig, sequences: Sequences) -> Codes:
    """1/2 for each variable operand in the query; 1 for the variable before it in the key of an assigned constant."""
    n = len(sequences)
    queries = torch.zeros(n, task.n_variables)
    row, side = np.nonzero(sequences.variables != NO_VARIABLE)
    queries[row, sequences.variables[row, side]] = 0.5
    keys = torch.zeros(n, task.n_ctx, task.n_variables)
    row, variable_at = np.nonzero(sequences.tokens[:, : task.prefix_length] >= task.first_variable_token)
    keys[row, variable_at + 1, sequences.tokens[row, variable_at] - task.first_variable_token] = 1
    return Codes(queries, keys)


def carried_codes(subject: Subject, stream: Stream) -> Codes:
    """The stream that blocks.1 reads, projected on what blocks.0 writes for each variable."""
    carried = symbols(subject).carried_tokens[subject.task.first_variable_token :]
    scale = subject.parameters["blocks.1.attn.W_Q"].shape[-1] ** -0.5
    return Codes(stream.q_input1 @ carried.T * scale, stream.k_input1 @ carried.T)


def pull(
    subject: Subject, run: Run, codes: Codes, attention: Callable[[Tensor, Tensor], Float[Tensor, "n n_ctx"]]
) -> Pull:
    """The negative gradient with respect to M at M = 0.

    Args:
        subject: the model.
        run: the batch.
        codes: q and k.
        attention: blocks.1's row of `=`, from the model's own one and the added scores.
    """
    n_variables = codes.queries.shape[1]
    block = torch.zeros(n_variables, n_variables, requires_grad=True)
    added = (codes.keys @ (codes.queries @ block)[:, :, None])[:, :, 0]
    logits = intervened(subject, run, pattern1=lambda own: attention(own, added)).logits
    answers = torch.from_numpy(run.sequences.answers)
    order = torch.randperm(len(answers), generator=torch.Generator().manual_seed(subject.data.seed))
    gradients = (
        torch.autograd.grad(F.cross_entropy(logits, target), block, retain_graph=True)[0]
        for target in (answers, answers[order])
    )
    return Pull(*(-gradient.double().numpy() for gradient in gradients))


def pull_at_zero_scores(subject: Subject) -> Pull:
    """In code space, with all of blocks.1's scores 0, so that `=` attends to all positions alike."""
    run = subject.once(training_run)
    return pull(subject, run, ideal_codes(subject.task, run.sequences), lambda own, added: added.softmax(-1))


def pull_at_own_scores(subject: Subject) -> Pull:
    """In code space, added to the model's own scores."""
    run = subject.once(training_run)
    return pull(subject, run, ideal_codes(subject.task, run.sequences), with_added_score)


def naive_pull(subject: Subject) -> Pull:
    """In the residual stream: V (-dL/dA) V^T at the model's own scores."""
    run = subject.once(training_run)
    return pull(subject, run, carried_codes(subject, intervened(subject, run)), with_added_score)


def pull_z(subject: Subject) -> Measurement:
    """`diagonal_z` of the pull at zero scores."""
    return diagonal_z(subject.once(pull_at_zero_scores).answers)


def pull_argmax(subject: Subject) -> Measurement:
    """Share of variables whose row of the pull at zero scores is largest on the diagonal."""
    return diagonal_argmax(subject, subject.once(pull_at_zero_scores).answers)


def shuffled_pull_z(subject: Subject) -> Measurement:
    """`diagonal_z` of the pull at zero scores towards shuffled answers.

    Far below 0 in finished models; of either sign, up to 14, while others learn to bind, so no claim is made of it.
    """
    return diagonal_z(subject.once(pull_at_zero_scores).shuffled)


def own_pull_z(subject: Subject) -> Measurement:
    """`diagonal_z` of the pull at the model's own scores; says nothing once the loss is close to 0."""
    return diagonal_z(subject.once(pull_at_own_scores).answers)


def naive_z(subject: Subject) -> Measurement:
    """`diagonal_z` of the pull in the residual stream: within 1.5 of 0 at every step of the paper's run."""
    return diagonal_z(subject.once(naive_pull).answers)


def pulls_before_binding(trajectory: TrajectorySubject) -> dict[int, Pull]:
    """By step, the pull at own scores of the checkpoints that add already while binding has not begun yet.

    Raises:
        NotApplicable: some checkpoint adds, and none is kept from that time.
    """
    adds = trajectory.curve(full_prefix_accuracy, kind=Kind.ZERO) >= ADDS
    kinds = (Kind.LEFT, Kind.RIGHT, Kind.TWO)
    best = np.max([trajectory.curve(full_prefix_accuracy, kind=kind) for kind in kinds], axis=0)
    waiting = np.flatnonzero(adds[: first_reached(best, BINDS)])
    if adds.any() and not len(waiting):
        raise NotApplicable("no checkpoint adds already and does not bind yet")
    # Copies, so that the activations that a subject keeps are let go of.
    return {trajectory.steps[i]: pull_at_own_scores(replace(trajectory.subjects[i])) for i in waiting}


def _least(measure: Callable[[np.ndarray], Measurement], trajectory: TrajectorySubject) -> Measurement:
    """Least value over the checkpoints before binding; nan where no checkpoint adds."""
    values = {step: measure(pull.answers).value for step, pull in pulls_before_binding(trajectory).items()}
    if not values:
        return exact(float("nan"), len(trajectory.steps), note="no checkpoint adds")
    step = min(values, key=values.__getitem__)
    return exact(values[step], len(values), note=f"least at step {step} of {len(values)} checkpoints")


def least_pull_z_before_binding(trajectory: TrajectorySubject) -> Measurement:
    """Least `diagonal_z` of the pull at own scores between addition and binding."""
    return _least(diagonal_z, trajectory)


def least_pull_argmax_before_binding(trajectory: TrajectorySubject) -> Measurement:
    """Least `diagonal_argmax` of the same."""
    return _least(partial(diagonal_argmax, trajectory.final), trajectory)
