"""Frequencies of the constants' embeddings and of the logits: what is delivered, what is written, what is needed.

A spectrum is the share of energy at each frequency 1 .. (modulus - 1) // 2 over the cyclic group of constants, the
mean left out; so it does not depend on scale.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from jaxtyping import Float, Int

from aa_core.circuits.fourier import key_frequencies, neuron_frequencies
from aa_core.circuits.subject import Subject
from aa_core.model.parameters import attention_weights
from aa_core.statistics import Measurement, exact, share


def spectrum(vectors: Float[np.ndarray, "modulus d"]) -> Float[np.ndarray, " frequencies"]:
    """Share of the energy of one vector a constant at each frequency from 1 on."""
    n = (len(vectors) - 1) // 2
    energy = (np.abs(np.fft.rfft(vectors, axis=0)) ** 2).sum(1)[1 : n + 1]
    return energy / max(float(energy.sum()), np.finfo(float).tiny)


def delivered_spectrum(subject: Subject) -> Float[np.ndarray, " frequencies"]:
    """Spectrum of the constants as blocks.1's OV circuit delivers them to `=`."""
    _, _, v1, o1 = attention_weights(subject.parameters, 1)
    return spectrum((subject.constant_embeddings() @ v1 @ o1).double().numpy())


def written_spectrum(subject: Subject) -> Float[np.ndarray, " frequencies"]:
    """Spectrum, over classes, of what the neurons write into the logits (`W_out W_U`).

    Each neuron counts with the norm of its column of `W_in`: its inputs scaled up and its outputs down change nothing.
    """
    scale = subject.tables.w_in.norm(dim=0)
    return spectrum((subject.tables.w_out_u * scale[:, None]).T.double().numpy())


def key_energy(subject: Subject) -> Measurement:
    """Share of the delivered energy at the key frequencies."""
    keys = key_frequencies(subject.once(neuron_frequencies))
    return exact(delivered_spectrum(subject)[keys - 1].sum(), note=f"{len(keys)} key frequencies")


def least_delivered_frequency(subject: Subject, least_share: float = 0.02) -> Measurement:
    """Least ratio of delivered to written share over the frequencies with at least that share of what is written.

    0 where a frequency that the neurons write does not reach them any more.
    """
    written = written_spectrum(subject)
    frequencies = np.flatnonzero(written >= least_share)
    if not len(frequencies):
        return exact(float("nan"), note="no frequency has that share")
    ratios = delivered_spectrum(subject)[frequencies] / written[frequencies]
    return exact(ratios.min(), len(ratios), note=f"least at frequency {frequencies[ratios.argmin()] + 1}")


def without_frequencies(
    vectors: Float[np.ndarray, "modulus d"], frequencies: Int[np.ndarray, " removed"]
) -> Float[np.ndarray, "modulus d"]:
    """One vector a constant, with the given frequencies removed (0 is the mean)."""
    coefficients = np.fft.rfft(vectors, axis=0)
    coefficients[frequencies] = 0
    return np.fft.irfft(coefficients, n=len(vectors), axis=0)


def accuracy_without(subject: Subject, frequencies: Int[np.ndarray, " removed"]) -> Measurement:
    """Accuracy on all sums with frequencies removed from the constants' embeddings."""
    weights = subject.parameters["embed.W_E"].clone()
    kept = without_frequencies(subject.constant_embeddings().double().numpy(), frequencies)
    weights[: subject.task.modulus] = torch.from_numpy(kept).to(weights.dtype)
    changed = dataclasses.replace(subject, parameters={**subject.parameters, "embed.W_E": weights})
    return share(changed.grid.correct, exhaustive=True, note=f"without {', '.join(map(str, frequencies))}")


def _keys_and_others(subject: Subject) -> tuple[np.ndarray, np.ndarray]:
    fits = subject.once(neuron_frequencies)
    keys = key_frequencies(fits)
    return keys, np.setdiff1d(np.arange(1, len(fits.r2) + 1), keys)


def restricted_accuracy(subject: Subject) -> Measurement:
    """Accuracy on all sums with only the mean and the key frequencies of the constants' embeddings."""
    return accuracy_without(subject, _keys_and_others(subject)[1])


def excluded_accuracy(subject: Subject) -> Measurement:
    """Accuracy on all sums without the key frequencies of the constants' embeddings."""
    return accuracy_without(subject, _keys_and_others(subject)[0])


def other_excluded_accuracy(subject: Subject) -> Measurement:
    """The control: accuracy without as many random other frequencies (or all others, where they are fewer)."""
    keys, others = _keys_and_others(subject)
    rng = np.random.default_rng(subject.data.seed)
    return accuracy_without(subject, rng.choice(others, min(len(keys), len(others)), replace=False))
