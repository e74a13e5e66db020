"""Where `=` looks, addition without binding, and binding without addition."""

from __future__ import annotations

from dataclasses import replace

import torch

from aa_core.circuits.attention import equals_operand_weights, equals_top_two
from aa_core.circuits.interventions import half_on, intervened
from aa_core.circuits.subject import Subject
from aa_core.statistics import Measurement, share
from aa_core.task.sampling import Kind


def operands_top_two(subject: Subject, kind: Kind) -> Measurement:
    """Share of sequences in which, of all that blocks.0's `=` attends to before itself, the operands are the top two.

    Itself is left out: what it finds there is the same in every sequence, so weight rests there in some models.
    """
    before = subject.full_prefix(kind).activations.pattern0[:, -1, :-1]
    smaller = equals_operand_weights(subject, 0, kind).min(1)
    return share((before.numpy() >= smaller[:, None]).sum(1) == 2)


def ideal_routing_accuracy(subject: Subject, kind: Kind) -> Measurement:
    """Share of right answers when `=` attends in blocks.1 to the two right constants, half and half.

    What is left to the model is the addition of what it attends to.
    """
    run = subject.full_prefix(kind)
    row = half_on(torch.from_numpy(run.sequences.sources), subject.task.n_ctx)
    return share(intervened(subject, run, pattern1=row).correct.numpy())


def unbound_accuracy(subject: Subject, kind: Kind) -> Measurement:
    """Share of right answers when blocks.0 attends to everything before alike, so that it binds nothing."""
    run = subject.full_prefix(kind)
    uniform = torch.ones(subject.task.n_ctx, subject.task.n_ctx).tril()
    uniform /= uniform.sum(-1, keepdim=True)
    return share(intervened(subject, run, pattern0=uniform.expand_as(run.activations.pattern0)).correct.numpy())


def _without_values(subject: Subject) -> Subject:
    """The model with all constants' embeddings equal to their mean: it cannot know any value."""
    embeddings = subject.parameters["embed.W_E"].clone()
    embeddings[: subject.task.modulus] = subject.constant_embeddings().mean(0)
    return replace(subject, parameters={**subject.parameters, "embed.W_E": embeddings})


def valueless_accuracy(subject: Subject, kind: Kind) -> Measurement:
    """Share of right answers of the model that cannot tell constants apart."""
    return share(subject.once(_without_values).full_prefix(kind).correct)


def valueless_top_two(subject: Subject, kind: Kind) -> Measurement:
    """Share of sequences in which `=` attends most to the right constants, in the model that cannot tell them apart."""
    return equals_top_two(subject.once(_without_values), 1, kind)
