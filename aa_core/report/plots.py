"""Figures of a model and of its training, from the measurements that claims are judged on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch.nn.functional as F

from aa_core.circuits.accuracy import full_prefix_accuracy, pool_accuracy
from aa_core.circuits.attention import equals_operand_weights, previous_token_weight
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.fourier import key_frequencies, neuron_frequencies
from aa_core.circuits.identity import identity_block, identity_z
from aa_core.circuits.representation import TWIN, resid_mid
from aa_core.circuits.subject import Subject
from aa_core.claims.registry import interval_alpha
from aa_core.report.svg import COLOURS, SERIES, Figure, heat, logarithmic, panel
from aa_core.task.problems import PAD_SIGN, problem_from_tokens
from aa_core.task.sampling import KINDS, POOLS, Kind

WITH_VARIABLES = (Kind.LEFT, Kind.RIGHT, Kind.TWO)


@dataclass(frozen=True)
class Plot:
    """A figure of a page.

    Attributes:
        title: what it is about.
        caption: what to see in it.
        panels: its drawings, `<svg>` elements.
    """

    title: str
    caption: str
    panels: tuple[str, ...]


def plots(judged: Subject | TrajectorySubject) -> list[Plot]:
    """Every figure: of the model, or of the last one of a trajectory and then of the trajectory."""
    if isinstance(judged, TrajectorySubject):
        return [*plots(judged.final), learning(judged)]
    return [figure(judged) for figure in (accuracies, attention, example, identity, representation, frequencies)]


def accuracies(subject: Subject) -> Plot:
    """Accuracy on each evaluation pool."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for row, name in enumerate(POOLS):
            accuracy = pool_accuracy(subject, name)
            if np.isnan(accuracy.value):
                axes.text(0.01, row, accuracy.note, va="center", color=COLOURS["muted"])
                continue
            low, high = accuracy.interval(interval_alpha()) or (accuracy.value,) * 2
            axes.barh(row, accuracy.value, height=0.6, color=COLOURS["series-1"], alpha=0.5)
            axes.errorbar(
                accuracy.value,
                row,
                xerr=[[accuracy.value - low], [high - accuracy.value]],
                color=COLOURS["ink"],
                linewidth=1,
                capsize=2,
            )
            axes.text(1.03, row, f"{accuracy.value:.3f}", va="center")
        axes.set(xlim=(0, 1.02), ylim=(len(POOLS) - 0.5, -0.5), xlabel="accuracy")
        axes.set_yticks(range(len(POOLS)), list(POOLS))
        axes.grid(visible=False, axis="y")

    return Plot(
        "Accuracy on the evaluation pools",
        "Share of right answers, with its interval as a thin line. Held-out: pairs of constants that training never "
        "showed. Restricted: letters on a side of `+` where training never put them. A model that has the circuit "
        "answers all pools; one that memorised its training pairs fails on the held-out ones.",
        (panel("accuracies", "Bars of the accuracy on each evaluation pool", draw, height=3.0),),
    )


def attention(subject: Subject) -> Plot:
    """Where `=` looks in both layers, by kind of sequence."""

    def draw(figure: Figure, layer: int, places: tuple[str, str]) -> None:
        axes = figure.subplots()
        for row, kind in enumerate(KINDS):
            left, right = equals_operand_weights(subject, layer, kind).mean(0)
            start = 0.0
            for weight, colour in ((left, "series-1"), (right, "series-2"), (1 - left - right, "grid")):
                axes.barh(row, weight, left=start, height=0.6, color=COLOURS[colour])
                start += weight
        for place, colour in zip((*places, "elsewhere"), ("series-1", "series-2", "grid"), strict=True):
            axes.barh(0, 0, color=COLOURS[colour], label=place)
        axes.set(xlim=(0, 1), ylim=(len(KINDS) - 0.5, -0.5), xlabel=f"blocks.{layer}: mean weight of the row of =")
        axes.set_yticks(range(len(KINDS)), list(KINDS))
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper left", ncols=3, handlelength=1, columnspacing=1)

    operands, sources = ("left operand", "right operand"), ("left summand", "right summand")
    return Plot(
        "What `=` attends to",
        "In blocks.0 the row of `=` should lie on the two operands, as they stand beside the `+`, whatever their kind. "
        "In blocks.1 it should lie on the two constants that the answer sums, about one half on each: for a variable "
        "the constant assigned to it in the prefix.",
        (
            panel("attention-0", "Weights of = in blocks.0", partial(draw, layer=0, places=operands), height=2.0),
            panel("attention-1", "Weights of = in blocks.1", partial(draw, layer=1, places=sources), height=2.0),
        ),
    )


def example(subject: Subject) -> Plot:
    """Both attention patterns on one sequence."""
    task, run = subject.task, subject.full_prefix(Kind.TWO)
    tokens = run.sequences.tokens[0]
    vocabulary = [*map(str, range(task.modulus)), "+", "=", PAD_SIGN, *task.variables]
    labels = [vocabulary[token] for token in tokens]
    places = np.arange(task.n_ctx) + 0.5

    def draw(figure: Figure) -> None:
        above, below = figure.subplots(2, sharex=True, height_ratios=[task.n_ctx, 1.3])
        heat(above, run.activations.pattern0[0].numpy(), 1)
        heat(below, run.activations.pattern1[:1].numpy(), 1)
        above.set_yticks(places, labels)
        above.set(ylabel="query, blocks.0")
        below.set_yticks([0.5], ["="])
        below.set(xlabel="key (below: the row of = in blocks.1)")
        below.set_xticks(places, labels)

    text = problem_from_tokens(task, tokens).text(task)
    answer, right = int(run.predictions[0]), int(run.sequences.answers[0])
    return Plot(
        "The attention patterns on one sequence",
        f"{text} The answer is {right}, the model says {answer}. Rows are queries, columns keys; the stronger the "
        "colour, the more weight. In blocks.0 each constant of the prefix should look at the variable before it, and "
        "`=` at both operands; in blocks.1 `=` should look at the constants assigned to those two variables.",
        (panel("example", f"Heat maps of both attention patterns on the sequence {text}", draw, height=4.0),),
    )


def identity(subject: Subject) -> Plot:
    """The block of blocks.1's QK circuit on variables."""
    block = identity_block(subject)
    limit = float(np.abs(block).max()) or 1.0
    places, letters = np.arange(len(block)) + 0.5, list(subject.task.variables)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=[len(block), 0.6])
        heat(left, block, limit)
        left.set_xticks(places, letters)
        left.set_yticks(places, letters)
        left.set(xlabel="variable at the key", ylabel="variable at the query")
        heat(right, np.linspace(1, -1, 9)[:, None], 1)
        right.yaxis.tick_right()
        right.set_xticks([])
        right.set_yticks([0.5, 4.5, 8.5], [f"{limit:.2g}", "0", f"{-limit:.2g}"])

    return Plot(
        "The identity block",
        "Score, in blocks.1, of a variable at `=` against a variable at a key, both as blocks.0 carries them there "
        "(before the softmax). A model that binds by identity has a strong diagonal: each letter matches itself.",
        (panel("identity", "Heat map of the identity block", draw, height=3.4),),
    )


def representation(subject: Subject) -> Plot:
    """Cosines of sequences with the 0-var sequence of the same values, and of other values."""
    twins = resid_mid(subject, TWIN)
    twins = twins - twins.mean(0)
    bins = np.linspace(-1, 1, 81)

    def draw(figure: Figure) -> None:
        for axes, kind in zip(figure.subplots(len(WITH_VARIABLES), sharex=True), WITH_VARIABLES, strict=True):
            vectors = resid_mid(subject, kind)
            vectors = vectors - vectors.mean(0)
            for others, label, colour in (
                (twins, "same values", "series-1"),
                (twins.roll(1, 0), "other values", "series-2"),
            ):
                cosines = F.cosine_similarity(vectors, others).numpy()
                share = np.full(len(cosines), 1 / len(cosines))
                axes.hist(
                    cosines, bins, weights=share, label=label, color=COLOURS[colour], alpha=0.7, histtype="stepfilled"
                )
            axes.set(xlim=(-1, 1), ylabel=kind, xticks=np.linspace(-1, 1, 5), yticks=[])
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
        figure.axes[-1].set(xlabel="cosine of blocks.1.hook_resid_mid at =, centred")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=2, handlelength=1)

    return Plot(
        "One representation for all kinds",
        "Each sequence with variables against a 0-var sequence, each set less its mean, as the MLP reads them. With "
        "the same two values the cosine should be near 1, with other values near 0: then the MLP cannot tell the "
        "kinds apart and adds all of them alike.",
        (panel("representation", "Histograms of cosines by kind", draw, height=3.4),),
    )


def frequencies(subject: Subject) -> Plot:
    """Best frequency of each neuron, and the weight of each frequency."""
    fits = subject.once(neuron_frequencies)
    weight = np.bincount(fits.best, fits.weight, minlength=len(fits.r2) + 1)
    heaviest = sorted(key_frequencies(fits), key=lambda frequency: -weight[frequency])[: len(SERIES)]
    names = dict(zip(sorted(heaviest), SERIES, strict=False))
    colours = [COLOURS[names.get(frequency, "muted")] for frequency in range(len(weight))]

    def neurons(figure: Figure) -> None:
        axes = figure.subplots()
        shown = np.flatnonzero(fits.live & (fits.weight > 0))
        points = fits.weight[shown], fits.r2.max(0)[shown]
        axes.scatter(*points, s=9, color=[colours[frequency] for frequency in fits.best[shown]], linewidths=0)
        logarithmic(axes)
        axes.set(ylim=(0, 1.02), xlabel="weight of the neuron", ylabel="variance explained (R²)")

    def bars(figure: Figure) -> None:
        axes = figure.subplots()
        axes.bar(range(1, len(weight)), weight[1:], color=colours[1:], width=0.75)
        axes.set(xlabel="frequency", ylabel="weight of its neurons")
        axes.grid(visible=False, axis="x")

    return Plot(
        "Frequencies of the MLP's neurons",
        "Each neuron's pre-activation over all sums, against the one frequency that explains most of its variance. "
        "The weight is what a neuron adds to the logits, all neurons together 1. Neurons that matter should "
        "be near 1, and a handful of frequencies should carry the weight. Colours are the same in both panels: the "
        f"{len(heaviest)} heaviest key frequencies; grey the rest.",
        (
            panel("neurons", "Variance that a neuron's best frequency explains, against its weight", neurons),
            panel("frequencies", "Weight of the neurons of each frequency", bars),
        ),
    )


def learning(trajectory: TrajectorySubject) -> Plot:
    """What the model answers, and what its circuit looks like, along training."""
    steps = np.maximum(trajectory.steps, 1)  # a logarithm has no place for step 0

    def accuracy(figure: Figure) -> None:
        axes = figure.subplots()
        for kind, colour, dashes in zip(KINDS, SERIES, ("-", "--", "-.", ":"), strict=False):
            values = trajectory.curve(full_prefix_accuracy, kind=kind)
            axes.plot(steps, values, dashes, color=COLOURS[colour], label=kind)
        logarithmic(axes)
        axes.set(xlabel="step", ylabel="accuracy on full prefixes", ylim=(0, 1.02))
        figure.legend(loc="outside upper left", ncols=4, handlelength=2, columnspacing=1)

    def circuit(figure: Figure) -> None:
        above, below = figure.subplots(2, sharex=True)
        above.plot(steps, trajectory.curve(previous_token_weight), color=COLOURS["series-5"])
        above.set(ylim=(0, 1.02), ylabel="previous token")
        below.plot(steps, trajectory.curve(identity_z), color=COLOURS["series-6"])
        logarithmic(below)
        below.set(xlabel="step", ylabel="identity z")

    return Plot(
        "Learning",
        "0-var sums should be right long before the model binds variables. The weight of the previous-token head of "
        "blocks.0, and z, by how many standard deviations the diagonal of the identity block stands out, should rise "
        "when sums with variables become right." + (" Step 0 is drawn at 1." if trajectory.steps[0] == 0 else ""),
        (
            panel("learning-accuracy", "Accuracies by kind against the step", accuracy, height=2.8),
            panel("learning-circuit", "Previous-token weight and identity z against the step", circuit, height=2.8),
        ),
    )
