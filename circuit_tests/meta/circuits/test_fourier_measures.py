"""Frequency measures on an adder made by hand, whose frequencies and phases are known.

With modulus 11 there are the frequencies 1 to 5. The constants' embeddings hold the waves of all five; neurons read
frequencies 1, 2 and 3 at eight phases each, and write the wave of the sum.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from aa_core.circuits import fourier, spectra
from aa_core.circuits.subject import Subject
from aa_core.model.config import ModelConfig, parameter_shapes
from aa_core.task.config import TaskConfig
from aa_core.task.split import Split, SplitConfig

TASK = TaskConfig(modulus=11, n_variables=4, max_assignments=2, n_ctx=8)
SPLIT = Split(TASK, SplitConfig(never_left="d", never_right="a"))
M, PHASES, READ, EXTRA = TASK.modulus, 8, (1, 2, 3), (4, 5)
FREQUENCIES = np.repeat(READ, PHASES)
N_NEURONS = len(FREQUENCIES)
WAVES = M - 1  # embedding dimensions: cosine and sine of each frequency; the classes come after them


def adder(
    *,
    reads: np.ndarray = FREQUENCIES,
    second: float = 0.0,
    writes: np.ndarray = FREQUENCIES,
    turn: float = 0.0,
    embedded: tuple[int, ...] = READ + EXTRA,
) -> Subject:
    """An adder.

    Args:
        reads: frequency that each neuron reads.
        second: amplitude at which each neuron reads the next frequency, too.
        writes: frequency that each neuron writes.
        turn: angle by which the output phase misses the sum of the input phases.
        embedded: frequencies in the constants' embeddings.
    """
    d = WAVES + M
    p = {name: torch.zeros(shape) for name, shape in parameter_shapes(TASK, ModelConfig(d, d, N_NEURONS)).items()}
    angle = 2 * np.pi / M * np.arange(M)
    theta = 2 * np.pi / PHASES * np.tile(np.arange(PHASES), len(READ))
    for k in embedded:
        p["embed.W_E"][:M, 2 * k - 2] = torch.tensor(np.cos(k * angle))
        p["embed.W_E"][:M, 2 * k - 1] = torch.tensor(np.sin(k * angle))
    for neuron in range(N_NEURONS):
        for k, size in ((reads[neuron], 1.0), (reads[neuron] + 1, second)):
            p["blocks.1.mlp.W_in"][2 * k - 2, neuron] += size * np.cos(theta[neuron])
            p["blocks.1.mlp.W_in"][2 * k - 1, neuron] += -size * np.sin(theta[neuron])
        wave = np.cos(writes[neuron] * angle + 2 * theta[neuron] + turn)
        p["blocks.1.mlp.W_out"][neuron, WAVES:] = torch.tensor(wave, dtype=torch.float32)
    p["unembed.W_U"][WAVES:] = torch.eye(M)
    p["blocks.1.attn.W_V"][0] = torch.eye(d)
    p["blocks.1.attn.W_O"][0] = torch.eye(d)
    return Subject(p, SPLIT)


def test_the_adder_adds():
    assert adder().grid.correct.all()


def test_each_neuron_is_explained_by_the_frequency_that_it_reads():
    fits = fourier.neuron_frequencies(adder())
    np.testing.assert_array_equal(fits.best, FREQUENCIES)
    np.testing.assert_allclose(fits.r2.max(0), 1, atol=1e-5)
    np.testing.assert_allclose(fits.r2.sum(0), 1, atol=1e-5, err_msg="frequencies share out the variance")
    np.testing.assert_allclose(fits.weight, 1 / N_NEURONS, rtol=0.1)
    assert fits.live.all()
    assert fourier.mean_neuron_r2(adder()).value == pytest.approx(1)


def test_a_neuron_of_two_frequencies_is_explained_by_the_squares_of_their_amplitudes():
    fits = fourier.neuron_frequencies(adder(second=0.5))
    np.testing.assert_array_equal(fits.best, FREQUENCIES)
    np.testing.assert_allclose(fits.r2[fits.best - 1, np.arange(N_NEURONS)], 0.8, atol=1e-5)
    np.testing.assert_allclose(fits.r2[fits.best, np.arange(N_NEURONS)], 0.2, atol=1e-5)
    assert fourier.weighted_neuron_r2(adder(second=0.5)).value == pytest.approx(0.8)


def test_the_fit_of_one_frequency_removes_the_other_and_keeps_phases():
    mixed, pure = (fourier.neuron_frequencies(adder(second=second)) for second in (0.5, 0.0))
    fit = fourier.single_frequency_fit(mixed, M, mixed.best)
    np.testing.assert_allclose(fit, pure.pre, atol=1e-5)


def test_right_and_wrong_frequencies_in_place_of_the_pre_activations():
    assert fourier.single_frequency_accuracy(adder(second=0.3)).value == 1
    assert fourier.other_frequency_accuracy(adder()).value < 0.5


def test_key_frequencies_are_those_that_neurons_read():
    measured = fourier.key_frequency_count(adder())
    assert (measured.value, measured.note) == (3, "1, 2, 3")
    measured = fourier.key_frequency_count(adder(reads=np.full(N_NEURONS, 5)))
    assert (measured.value, measured.note) == (1, "5")


@pytest.mark.parametrize(("turn", "cosine"), [(0, 1), (np.pi / 3, 0.5), (np.pi, -1)])
def test_output_phase_is_compared_with_the_sum_of_input_phases(turn: float, cosine: float):
    assert fourier.output_phase(adder(turn=turn)).value == pytest.approx(cosine, abs=1e-5)


def test_output_r2_is_taken_at_the_frequency_of_the_input():
    assert fourier.output_r2(adder()).value == pytest.approx(1)
    assert fourier.output_r2(adder(writes=FREQUENCIES + 1)).value == pytest.approx(0, abs=1e-6)


def test_spectra_are_shares_by_frequency():
    np.testing.assert_allclose(spectra.delivered_spectrum(adder()), 1 / 5, atol=1e-6)
    np.testing.assert_allclose(spectra.written_spectrum(adder()), [1 / 3, 1 / 3, 1 / 3, 0, 0], atol=1e-6)
    assert spectra.key_energy(adder()).value == pytest.approx(3 / 5)
    assert spectra.key_energy(adder(embedded=(1, 2, 3, 5))).value == pytest.approx(3 / 4)


def test_a_frequency_that_is_written_but_not_delivered_shows():
    whole = spectra.least_delivered_frequency(adder(embedded=READ))
    assert whole.value == pytest.approx(1)
    lost = spectra.least_delivered_frequency(adder(embedded=(1, 3)))
    assert lost.value == pytest.approx(0, abs=1e-9)
    assert lost.note == "least at frequency 2"
    unread = spectra.least_delivered_frequency(adder(embedded=(1, 2, 3, 4)))
    assert unread.value == pytest.approx(3 / 4), "a delivered frequency that nothing writes is no loss of another"


def test_removing_a_frequency_removes_its_wave_alone():
    angle = 2 * np.pi / M * np.arange(M)
    waves = np.stack([np.ones(M), np.cos(angle + 1), np.sin(3 * angle + 2), np.cos(5 * angle)], axis=1)
    kept = spectra.without_frequencies(waves, np.array([3]))
    np.testing.assert_allclose(kept, waves * [1, 1, 0, 1], atol=1e-12)


def test_key_frequencies_suffice_and_are_needed_while_others_are_not():
    subject = adder()
    assert spectra.restricted_accuracy(subject).value == 1
    assert spectra.other_excluded_accuracy(subject).value == 1
    assert spectra.other_excluded_accuracy(subject).note == "without 4, 5"
    assert spectra.excluded_accuracy(subject).value < 0.4, "logits equal up to rounding"
    assert Subject(subject.parameters, SPLIT).grid.correct.all(), "the model under test is left as it was"
