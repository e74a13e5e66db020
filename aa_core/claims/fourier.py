"""The MLP adds with single frequencies."""

from __future__ import annotations

from aa_core.circuits.fourier import (
    mean_neuron_r2,
    output_phase,
    random_frequency_accuracy,
    single_frequency_accuracy,
    weighted_neuron_r2,
)
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least, at_most

PAPER = "Pre-activations of the second MLP's neurons fit a cos(kn) + b cos(km) of one frequency k."
BROKEN_BY = ("ov1-rows-shuffled", "constants-permuted", "random")

CLAIMS = (
    Claim(
        id="fourier/neuron-r2",
        statement="Neurons' pre-activations over all sums are waves of one frequency.",
        paper=PAPER,
        form=Form.LITERAL,
        criterion=Criterion(
            "mean over live neurons of the variance explained by the best frequency", mean_neuron_r2, at_least(0.5)
        ),
        evidence="authors' late checkpoints .62; random .14, OV rows shuffled .30; only 28 % of neurons reach .85",
        broken_by=BROKEN_BY,
    ),
    Claim(
        id="fourier/weighted-r2",
        statement="The neurons that matter to the answer are waves of one frequency.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "the same, neurons weighted by what they add to the logits", weighted_neuron_r2, at_least(0.75)
        ),
        evidence="authors' late checkpoints .849 to .853; random .14, OV rows shuffled .29; .74 at step 401",
        broken_by=BROKEN_BY,
    ),
    Claim(
        id="fourier/single-frequency-is-enough",
        statement="With every pre-activation replaced by its best single-frequency fit the model still adds.",
        paper=PAPER,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "accuracy on all sums with the fits in place of the pre-activations",
            single_frequency_accuracy,
            at_least(0.95),
        ),
        conditions=(
            Criterion("the same with a random key frequency for each neuron", random_frequency_accuracy, at_most(0.4)),
        ),
        evidence="authors' late checkpoints 1.000 (random key .15 to .26); random and broken .02; .911 at step 401",
        broken_by=(*BROKEN_BY, "win-permuted"),
    ),
    Claim(
        id="fourier/output-phase",
        statement="A neuron writes the wave of the sum: its output phase is the sum of its input phases.",
        paper="Neurons combine cos(kn + a) and cos(km + b) into cos(k(n + m) + a + b) (addition in the MLP).",
        form=Form.CONTROLLED,
        criterion=Criterion("weighted mean cosine of output phase - sum of input phases", output_phase, at_least(0.9)),
        evidence="authors' late checkpoints .983; random -.01, W_in permuted .08, constants permuted -.12",
        broken_by=(*BROKEN_BY, "win-permuted"),
    ),
)
