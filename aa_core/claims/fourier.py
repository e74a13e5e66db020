"""The MLP adds with single frequencies."""

from __future__ import annotations

from aa_core.circuits.fourier import (
    key_frequency_count,
    mean_neuron_r2,
    other_frequency_accuracy,
    output_phase,
    output_r2,
    single_frequency_accuracy,
    weighted_neuron_r2,
)
from aa_core.circuits.spectra import (
    excluded_accuracy,
    key_energy,
    least_delivered_frequency,
    other_excluded_accuracy,
    restricted_accuracy,
)
from aa_core.claims.accuracy import solves
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.statistics import at_least, at_most
from aa_core.task.sampling import Kind

PAPER = "Pre-activations of the second MLP's neurons fit a cos(kn) + b cos(km) of one frequency k."
SPARSE = "The model represents constants with a few key frequencies."
BROKEN_BY = ("ov1-rows-shuffled", "constants-permuted", "random")

# With two thirds of all frequencies called key, as on random weights, what holds for the key ones says nothing.
FEW = Criterion("number of key frequencies", key_frequency_count, at_most(13))

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
        broken_by=(*BROKEN_BY, "sums-looked-up"),
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
        broken_by=(*BROKEN_BY, "sums-looked-up"),
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
            Criterion("the same with the next key frequency for each neuron", other_frequency_accuracy, at_most(0.4)),
        ),
        evidence="authors' late checkpoints 1.000 (next key .03 to .04); random and broken .02; .911 at step 401",
        broken_by=(*BROKEN_BY, "win-permuted", "output-phases-shuffled", "sums-looked-up"),
    ),
    Claim(
        id="fourier/output-phase",
        statement="A neuron writes the wave of the sum: its output phase is the sum of its input phases.",
        paper="Neurons combine cos(kn + a) and cos(km + b) into cos(k(n + m) + a + b) (addition in the MLP).",
        form=Form.CONTROLLED,
        criterion=Criterion("weighted mean cosine of output phase - sum of input phases", output_phase, at_least(0.9)),
        evidence="authors' late checkpoints .983; random -.01, W_in permuted .08, constants permuted -.12",
        broken_by=(*BROKEN_BY, "win-permuted", "output-phases-shuffled"),
    ),
    Claim(
        id="fourier/output-r2",
        statement="A neuron writes a wave of the frequency that it reads.",
        paper="As fourier/output-phase.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "weighted mean variance, over classes, of what a neuron writes at its input's best frequency",
            output_r2,
            at_least(0.75),
        ),
        evidence="authors' late checkpoints .887 to .902; random .04, W_in permuted .08; .655 at step 401",
        broken_by=(*BROKEN_BY, "win-permuted", "sums-looked-up"),
    ),
    Claim(
        id="fourier/key-frequencies",
        statement="The neurons that matter share a handful of frequencies.",
        paper=SPARSE,
        form=Form.LITERAL,
        criterion=FEW,
        conditions=(Criterion("number of key frequencies", key_frequency_count, at_least(4)),),
        evidence="authors' run 10 from step 3201 on, 4 at step 401, five other runs 7 to 11; random 17 to 26 (30 "
        "draws), constants permuted 15 to 22 (10 draws)",
        broken_by=("constants-permuted", "sums-looked-up", "random"),
    ),
    Claim(
        id="fourier/key-energy",
        statement="What blocks.1 carries of a constant lies at the key frequencies.",
        paper=SPARSE,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "share of the energy of W_E[constants] W_V W_O at the key frequencies", key_energy, at_least(0.9)
        ),
        conditions=(FEW,),
        evidence="authors' late checkpoints .989 to .995, five other runs .954 to .984; random .64 to .91, constants "
        "permuted .58 to .78; .71 at step 401",
        broken_by=("constants-permuted", "random"),
    ),
    Claim(
        id="fourier/key-frequencies-suffice",
        statement="The model adds with only the key frequencies left in the constants' embeddings.",
        paper=SPARSE,
        form=Form.CONTROLLED,
        criterion=Criterion(
            "accuracy on all sums with only the mean and the key frequencies", restricted_accuracy, at_least(0.98)
        ),
        conditions=(FEW,),
        evidence="authors' late checkpoints .996 to 1.000; random .02; .844 at step 401",
        broken_by=(*BROKEN_BY, "win-permuted", "output-phases-shuffled", "top-5-frequencies-removed"),
    ),
    Claim(
        id="fourier/key-frequencies-needed",
        statement="The model cannot add without the key frequencies, but without as many others.",
        paper=SPARSE,
        form=Form.CONTROLLED,
        criterion=Criterion("accuracy on all sums without the key frequencies", excluded_accuracy, at_most(0.1)),
        conditions=(Criterion("the same without as many random other ones", other_excluded_accuracy, at_least(0.98)),),
        evidence="authors' late checkpoints .016 to .021 (chance .017) and .996 to 1.000, five other runs .020 to "
        ".037; random at chance in both",
        broken_by=(*BROKEN_BY, "win-permuted", "sums-looked-up", "top-5-frequencies-removed"),
    ),
    Claim(
        id="fourier/every-written-frequency-delivered",
        statement="Every frequency that the neurons write into the logits reaches them from the constants.",
        paper="The same key frequencies appear in the constants' embeddings, the neurons and the logits.",
        form=Form.CONTROLLED,
        criterion=Criterion(
            "least ratio, over frequencies with 2 % of the energy of W_out W_U (neurons times the norm of their W_in), "
            "of their shares in W_E[constants] W_V W_O and there",
            least_delivered_frequency,
            at_least(0.4),
        ),
        conditions=(FEW, solves(Kind.ZERO)),
        evidence="authors' checkpoints .78 to .89 from step 401 on; 0 with the strongest frequency removed from the "
        "constants, though the model still adds .99 of all sums; random .55 to .71 with 18 to 25 key frequencies",
        broken_by=("top-frequency-removed", "top-5-frequencies-removed", "constants-permuted", "random"),
    ),
)
