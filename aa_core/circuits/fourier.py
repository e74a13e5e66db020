"""Frequencies of the MLP's neurons over the grid of sums.

The pre-activation of a neuron on all `modulus**2` sums n + m is compared with one frequency k:
`mean + a cos kn + b sin kn + c cos km + d sin km` (angles in units of 2 pi / modulus).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from aa_core.circuits.subject import Subject
from aa_core.statistics import Measurement, NotApplicable, exact, share


@dataclass(frozen=True)
class NeuronFrequencies:
    """Each neuron's pre-activations on the grid in terms of single frequencies.

    Attributes:
        pre: pre-activations, grid in row-major order.
        r2: share of a neuron's variance that frequency k + 1 explains.
        weight: how much a neuron matters: variance of its activation times the squared norm of what it adds to
            the logits (centred over classes), summing to 1.
        live: the neuron is on somewhere on the grid.
    """

    pre: Float[np.ndarray, "grid d_mlp"]
    r2: Float[np.ndarray, "frequencies d_mlp"]
    weight: Float[np.ndarray, " d_mlp"]
    live: Bool[np.ndarray, " d_mlp"]

    @property
    def best(self) -> Int[np.ndarray, " d_mlp"]:
        """Best frequency of each neuron, 1 to (modulus - 1) // 2."""
        return self.r2.argmax(0) + 1


def neuron_frequencies(subject: Subject) -> NeuronFrequencies:
    """Fit every neuron on the grid; exact, since sines and cosines are orthogonal there.

    Raises:
        NotApplicable: the modulus is 2, so that there is no frequency besides 0 and the alternating one.
    """
    m = subject.task.modulus
    if m < 3:
        raise NotApplicable("a modulus of 2 has no frequency")
    mid = subject.grid.activations.resid_mid.double()
    pre = (mid @ subject.tables.w_in.double()).numpy()
    rows, columns = _spectra(pre, m)
    # |c_k|^2 of a mean over m points carries the variance 2 |c_k|^2 of its cosine and sine together.
    explained = 2 * (np.abs(rows) ** 2 + np.abs(columns) ** 2)
    # A variance that float32 cannot tell from 0 counts as that much, so a constant neuron has an R2 of about 0.
    least = (np.finfo(np.float32).eps * np.abs(pre).max(0)) ** 2
    variance = np.maximum(pre.var(0), np.maximum(least, np.finfo(float).tiny))
    post = np.maximum(pre, 0)
    written = subject.tables.w_out_u.double().numpy()
    written = written - written.mean(1, keepdims=True)
    weight = post.var(0) * (written**2).sum(1)
    return NeuronFrequencies(
        pre, explained / variance, weight / max(float(weight.sum()), np.finfo(float).tiny), post.max(0) > 0
    )


def _spectra(
    pre: Float[np.ndarray, "grid d_mlp"], m: int
) -> tuple[Complex[np.ndarray, "frequencies d_mlp"], Complex[np.ndarray, "frequencies d_mlp"]]:
    """Fourier coefficients 1 .. (m - 1) // 2 of the means over the right operand and over the left one."""
    grid = pre.reshape(m, m, -1)
    kept = slice(1, (m - 1) // 2 + 1)
    return np.fft.rfft(grid.mean(1), axis=0)[kept] / m, np.fft.rfft(grid.mean(0), axis=0)[kept] / m


def single_frequency_fit(
    fits: NeuronFrequencies, m: int, frequency: Int[np.ndarray, " d_mlp"]
) -> Float[np.ndarray, "grid d_mlp"]:
    """Each neuron's pre-activations with everything but its mean and one given frequency removed."""
    rows, columns = _spectra(fits.pre, m)
    neuron = np.arange(len(frequency))
    wave = np.exp(2j * np.pi * np.outer(np.arange(m), frequency) / m)
    left = 2 * np.real(wave * rows[frequency - 1, neuron])
    right = 2 * np.real(wave * columns[frequency - 1, neuron])
    return (fits.pre.mean(0) + left[:, None] + right[None]).reshape(m * m, -1)


def mean_neuron_r2(subject: Subject) -> Measurement:
    """Mean over live neurons of the variance that the best single frequency explains."""
    fits = subject.once(neuron_frequencies)
    if not fits.live.any():
        return exact(float("nan"), note="no neuron is ever on")
    return exact(fits.r2.max(0)[fits.live].mean(), int(fits.live.sum()))


def weighted_neuron_r2(subject: Subject) -> Measurement:
    """The same, each neuron weighted by how much it matters to the logits."""
    fits = subject.once(neuron_frequencies)
    return exact((fits.r2.max(0) * fits.weight).sum(), int(fits.live.sum()))


def key_frequencies(fits: NeuronFrequencies, least_weight: float = 0.02) -> Int[np.ndarray, " keys"]:
    """Frequencies whose neurons together carry at least that share of the weight."""
    total = np.bincount(fits.best, fits.weight, minlength=len(fits.r2) + 1)
    return np.flatnonzero(total >= least_weight)


def key_frequency_count(subject: Subject) -> Measurement:
    """Number of key frequencies; the note names them."""
    keys = key_frequencies(subject.once(neuron_frequencies))
    return exact(len(keys), note=", ".join(map(str, keys)))


def _accuracy_with(subject: Subject, pre: Float[np.ndarray, "grid d_mlp"]) -> Measurement:
    """Accuracy on the grid with the given pre-activations in place of the model's."""
    tables, run = subject.tables, subject.grid
    post: Tensor = torch.from_numpy(pre).relu().to(tables.w_out_u.dtype)
    logits = post @ tables.w_out_u + run.activations.resid_mid @ tables.w_u
    return share(logits.argmax(-1).numpy() == run.sequences.answers, exhaustive=True)


def single_frequency_accuracy(subject: Subject) -> Measurement:
    """Accuracy on all sums with *every* pre-activation replaced by its best single-frequency fit."""
    fits = subject.once(neuron_frequencies)
    return _accuracy_with(subject, single_frequency_fit(fits, subject.task.modulus, fits.best))


def other_frequency_accuracy(subject: Subject) -> Measurement:
    """The control: the same with the next key frequency for each neuron, after its own and around the end."""
    fits = subject.once(neuron_frequencies)
    keys = key_frequencies(fits)
    if not len(keys):
        keys = np.arange(1, len(fits.r2) + 1)
    following = keys[np.searchsorted(keys, fits.best, side="right") % len(keys)]
    return _accuracy_with(subject, single_frequency_fit(fits, subject.task.modulus, following))


def output_phase(subject: Subject) -> Measurement:
    """Weighted mean cosine between a neuron's output phase and the sum of its two input phases.

    A neuron with pre-activation `cos(kn + a) + cos(km + b)` that computes the sum writes `cos(kc + a + b)` to the
    logit of class c. The phases are those of the neuron's best frequency.
    """
    fits = subject.once(neuron_frequencies)
    m = subject.task.modulus
    rows, columns = _spectra(fits.pre, m)
    neuron = np.arange(len(fits.weight))
    out = _output_coefficients(subject)[fits.best, neuron]
    at = fits.best - 1, neuron
    turn = np.angle(out) - np.angle(rows[at]) - np.angle(columns[at])
    return exact((fits.weight * np.cos(turn)).sum(), int(fits.live.sum()))


def output_r2(subject: Subject) -> Measurement:
    """Weighted mean share of the variance of what a neuron writes, over classes, at the frequency of its input."""
    fits = subject.once(neuron_frequencies)
    power = np.abs(_output_coefficients(subject)) ** 2
    # Frequency 0 is the mean over classes; every other one carries twice the power of its coefficient.
    variance = np.maximum(2 * power[1 : len(fits.r2) + 1].sum(0), np.finfo(float).tiny)
    explained = 2 * power[fits.best, np.arange(len(fits.best))] / variance
    return exact((fits.weight * explained).sum(), int(fits.live.sum()))


def _output_coefficients(subject: Subject) -> Complex[np.ndarray, "frequencies d_mlp"]:
    """Fourier coefficients, from 0 on, over classes of what each neuron writes into the logits."""
    written = subject.tables.w_out_u.double().numpy().T
    return np.fft.rfft(written, axis=0) / len(written)
