"""Controls that break addition, or keep it and do it in another way."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from aa_core.circuits.fourier import neuron_frequencies
from aa_core.circuits.spectra import delivered_spectrum, without_frequencies
from aa_core.circuits.subject import Subject
from aa_core.controls.control import Control
from aa_core.controls.edits import derangement, edited, symbols
from aa_core.model.parameters import Parameters, attention_weights


def _with_constants(subject: Subject, embeddings: Tensor) -> Parameters:
    embed = subject.parameters["embed.W_E"].clone()
    embed[: subject.task.modulus] = embeddings.to(embed.dtype)
    return edited(subject.parameters, W_E=embed)


def _constants_permuted(subject: Subject, seed: int) -> Parameters:
    order = derangement(subject.task.modulus, np.random.default_rng(seed))
    return _with_constants(subject, subject.constant_embeddings()[order])


def _ov1_rows_shuffled(subject: Subject, seed: int) -> Parameters:
    value = attention_weights(subject.parameters, 1)[2]
    return edited(subject.parameters, W_V1=value[derangement(len(value), np.random.default_rng(seed))])


def _win_permuted(subject: Subject, seed: int) -> Parameters:
    w_in = subject.parameters["blocks.1.mlp.W_in"]
    return edited(subject.parameters, W_in=w_in[:, derangement(w_in.shape[1], np.random.default_rng(seed))])


def _output_phases_shuffled(subject: Subject, seed: int) -> Parameters:
    rng = np.random.default_rng(seed)
    best = subject.once(neuron_frequencies).best
    order = np.arange(len(best))
    for frequency in np.unique(best):
        neurons = np.flatnonzero(best == frequency)
        order[neurons] = neurons[derangement(len(neurons), rng)]
    return edited(subject.parameters, W_out=subject.parameters["blocks.1.mlp.W_out"][order])


def _frequencies_removed(subject: Subject, seed: int, *, n: int) -> Parameters:
    strongest = np.argsort(-delivered_spectrum(subject), kind="stable")[:n] + 1
    embeddings = subject.constant_embeddings().double().numpy()
    return _with_constants(subject, torch.from_numpy(without_frequencies(embeddings, strongest)))


# Where a neuron of the look-up table switches on, in weight of values in the residual stream (1 in all on average).
# Two variables leave each value .2 or more; only n + n gives one value more than .75.
PAIR_ON, SAME_ON = 0.3, 0.75
PAIR_LOGIT, SAME_LOGIT = 100.0, 2000.0

MARK = 3.0


def _sums_looked_up(subject: Subject, seed: int) -> Parameters:
    n, m = np.triu_indices(subject.task.modulus)
    seen = subject.split.seen | subject.split.seen.T
    n, m = n[seen[n, m]], m[seen[n, m]]
    same = torch.from_numpy(n == m)
    reader = _value_reader(subject)
    w_in = reader[:, n] + reader[:, m] * ~same - torch.where(same, SAME_ON, PAIR_ON) * reader.sum(1, keepdim=True)
    logits = torch.zeros(len(n), subject.task.modulus, dtype=torch.float64)
    logits[torch.arange(len(n)), torch.from_numpy((n + m) % subject.task.modulus)] = torch.where(
        same, SAME_LOGIT, PAIR_LOGIT
    ).double()
    w_out = logits @ torch.linalg.pinv(subject.parameters["unembed.W_U"].double())
    return edited(subject.parameters, W_in=w_in, W_out=w_out)


def _value_reader(subject: Subject) -> Float[Tensor, "d_model modulus"]:
    """The linear map that best reads the operand values off the residual stream before the MLP, each as 1/2."""
    runs = [*subject.full_prefixes(), subject.grid]
    resid_mid = torch.cat([run.activations.resid_mid for run in runs]).double()
    values = torch.from_numpy(np.concatenate([run.sequences.values for run in runs]))
    halves = torch.full(values.shape, 0.5, dtype=torch.float64)
    target = torch.zeros(len(values), subject.task.modulus, dtype=torch.float64).scatter_add_(1, values, halves)
    return torch.linalg.pinv(resid_mid.T @ resid_mid, hermitian=True) @ (resid_mid.T @ target)


def _prefix_marked(subject: Subject, seed: int) -> Parameters:
    old, prefix = subject.parameters, subject.task.prefix_length
    resid_mid = torch.cat([run.activations.resid_mid for run in subject.full_prefixes()]).double()
    unused = torch.linalg.eigh(resid_mid.T @ resid_mid)[1][:, 0]
    signs = np.repeat(np.random.default_rng(seed).permutation(np.resize([1, -1], prefix // 2)), 2)
    mark = MARK * float(resid_mid.norm(dim=1).mean()) * unused
    _, _, value, output = (weight.double() for weight in attention_weights(old, 1))
    positions = torch.linalg.pinv(symbols(old))[:, subject.task.d_vocab :][:, :prefix]
    source = positions @ torch.from_numpy(signs).double()
    return edited(
        old,
        W_V1=value + torch.outer(source, mark @ torch.linalg.pinv(output)),
        W_in=_without(old["blocks.1.mlp.W_in"], unused),
        W_U=_without(old["unembed.W_U"], unused),
    )


def _without(weight: Tensor, direction: Tensor) -> Tensor:
    """A matrix that reads the residual stream, made blind to a unit vector."""
    weight = weight.double()
    return weight - torch.outer(direction, direction @ weight)


BINDING = ("previous-token", "qk-identity", "routing", "shared-representation")

CONTROLS = (
    Control(
        "ov1-rows-shuffled",
        "Input rows of blocks.1's W_V are permuted, so constants reach the MLP as noise.",
        _ov1_rows_shuffled,
        spares=("previous-token", "qk-identity", "routing"),
    ),
    Control(
        "constants-permuted",
        "Embeddings of the constants are permuted, so sums are right for other numbers than those written.",
        _constants_permuted,
        spares=BINDING,
    ),
    Control(
        "win-permuted",
        "Columns of W_in are permuted: neurons keep their waves and write each other's outputs.",
        _win_permuted,
        spares=BINDING,
    ),
    Control(
        "output-phases-shuffled",
        "Rows of W_out are permuted among neurons of one best frequency: inputs and frequencies stay, the tie between "
        "input and output phases goes.",
        _output_phases_shuffled,
        spares=BINDING,
    ),
    Control(
        "top-frequency-removed",
        "The strongest frequency in W_E[constants] W_V W_O of blocks.1 is filtered out of the constants' embeddings: "
        "nearly every sum survives, so only a claim on that frequency can see it.",
        partial(_frequencies_removed, n=1),
        spares=(*BINDING, "accuracy", "probes", "gradient"),
    ),
    Control(
        "top-5-frequencies-removed",
        "The five strongest frequencies in W_E[constants] W_V W_O of blocks.1 are filtered out of the constants' "
        "embeddings.",
        partial(_frequencies_removed, n=5),
        spares=("previous-token", "qk-identity", "routing", "gradient"),
    ),
    Control(
        "sums-looked-up",
        "The MLP is a table with one neuron for each pair of constants seen in either order: it answers what training "
        "showed, without waves, and nothing else.",
        _sums_looked_up,
        spares=(*BINDING, "accuracy", "probes"),
    ),
    Control(
        "prefix-marked",
        "blocks.1 adds a vector that says where in the prefix it looked, in a direction that nothing reads any more: "
        "the answers stay, the vectors before the MLP differ.",
        _prefix_marked,
        spares=("previous-token", "qk-identity", "fourier", "accuracy", "generalisation", "circuit"),
    ),
)
