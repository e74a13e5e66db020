"""Figures show what was measured."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from aa_core.circuits.accuracy import full_prefix_accuracy, pool_accuracy
from aa_core.circuits.attention import equals_operand_weights, previous_token_weight
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.fourier import key_frequencies, neuron_frequencies
from aa_core.circuits.identity import identity_block, identity_z
from aa_core.circuits.representation import mismatched_cosine, twin_cosine
from aa_core.circuits.subject import DataConfig, Subject
from aa_core.report.plots import accuracies, attention, example, frequencies, identity, learning, plots, representation
from aa_core.report.svg import heat, logarithmic, panel
from aa_core.task.problems import problem_from_tokens
from aa_core.task.sampling import KINDS, POOLS, Kind
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.checkpoint_files import SPLIT, TASK, small_parameters
from circuit_tests.meta.report.html_reader import Reader, words

DATA = DataConfig(full_prefix=40, pool=40, pairs=12)


def subject(seed: int = 0, split: SplitConfig = SPLIT) -> Subject:
    return Subject(small_parameters(seed), Split(TASK, split), DATA)


def cells(svg: str) -> list[tuple[str, float]]:
    """Colour and opacity of each cell that is not clear."""
    found = re.findall(r"fill: var\(--(positive|negative)\)(?:; fill-opacity: ([\d.]+))?", svg)
    return [(name, float(opacity or 1)) for name, opacity in found]


def test_figures_of_a_trajectory_are_those_of_its_last_model_and_of_learning():
    *model, last = plots(TrajectorySubject((0, 3), (subject(1), subject())))
    assert model == plots(subject())
    assert len(model) == 6
    assert last.title == "Learning"


def test_pool_accuracies_are_those_measured():
    judged = subject()
    text = words(accuracies(judged).panels[0])
    for name in POOLS:
        assert name in text
        assert f"{pool_accuracy(judged, name).value:.3f}" in text, name


def shapes(svg: str, colour: str) -> list[np.ndarray]:
    """Points [n, 2] of each shape in a colour, in the order of drawing."""
    paths = re.findall(rf'<path d="([^"]*)"[^>]*style="[^"]*(?:fill|stroke): var\(--{colour}\)', svg)
    return [np.array(re.findall(r"-?[\d.]+", path), dtype=float).reshape(-1, 2) for path in paths]


def bars(svg: str, colour: str, axis: int) -> np.ndarray:
    return np.array([np.ptp(points[:, axis]) for points in shapes(svg, colour)])


def test_bars_of_attention_are_mean_weights():
    judged = subject()
    for layer, svg in enumerate(attention(judged).panels):
        parts = np.stack([bars(svg, colour, 0)[: len(KINDS)] for colour in ("series-1", "series-2")], axis=1)
        rest = [points for points in shapes(svg, "grid") if len(points) == 4][: len(KINDS)]
        whole = parts.sum(1) + [np.ptp(points[:, 0]) for points in rest]
        expected = [equals_operand_weights(judged, layer, kind).mean(0) for kind in KINDS]
        np.testing.assert_allclose(parts / whole[:, None], expected, atol=1e-5)


def test_histograms_have_the_measured_means():
    judged = subject()
    (svg,) = representation(judged).panels
    for colour, cosine in (("series-1", twin_cosine), ("series-2", mismatched_cosine)):
        for kind, points in zip((Kind.LEFT, Kind.RIGHT, Kind.TWO), shapes(svg, colour)[:3], strict=True):
            x, y = points.T
            cross = x * np.roll(y, -1) - np.roll(x, -1) * y
            centre = ((x + np.roll(x, -1)) * cross).sum() / 3 / cross.sum()
            drawn = 2 * (centre - x.min()) / np.ptp(x) - 1
            measured = cosine(judged, kind, centred=True).value
            assert abs(drawn - measured) < 0.0125, f"{cosine.__name__} of {kind}: {drawn}, measured {measured}"


def test_bars_of_frequencies_are_their_weights():
    judged = subject()
    fits = judged.once(neuron_frequencies)
    keys = key_frequencies(fits)
    weight = np.bincount(fits.best, fits.weight)[keys]
    svg = frequencies(judged).panels[1]
    drawn = np.concatenate([bars(svg, f"series-{i}", 1) for i in range(1, len(keys) + 1)])
    np.testing.assert_allclose(drawn / drawn.sum(), weight / weight.sum(), atol=1e-5)


def test_identity_block_has_queries_as_rows():
    judged = subject()
    block = identity_block(judged)
    drawn = cells(identity(judged).panels[0])[: block.size]
    signed = [opacity if name == "positive" else -opacity for name, opacity in drawn]
    np.testing.assert_allclose(signed, (block / np.abs(block).max()).ravel(), atol=1e-5)


def test_curves_of_learning_are_those_measured():
    trajectory = TrajectorySubject((1, 3, 20), (subject(1), subject(2), subject()))
    accuracy, circuit = learning(trajectory).panels
    curves = [(accuracy, f"series-{i}", full_prefix_accuracy, {"kind": kind}) for i, kind in enumerate(KINDS, 1)]
    curves += [(circuit, "series-5", previous_token_weight, {}), (circuit, "series-6", identity_z, {})]
    for svg, colour, measure, arguments in curves:
        x, y = shapes(svg, colour)[0].T
        values = trajectory.curve(measure, **arguments)
        fraction = (values[1] - values[0]) / (values[2] - values[0])
        assert (y[1] - y[0]) / (y[2] - y[0]) == pytest.approx(fraction, abs=1e-3), f"{measure.__name__} {arguments}"
        assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx(np.log(3) / np.log(20), abs=1e-3)


def test_pools_that_the_split_lacks():
    judged = subject(split=SplitConfig(1.0, never_left="e", never_right=""))
    text = words(accuracies(judged).panels[0])
    assert text.count("the split has no such sequence") == 4, "three held-out pools, and both letters restricted"


def test_example_shows_both_patterns():
    judged = subject()
    run = judged.full_prefix(Kind.TWO)
    (svg,) = example(judged).panels
    weights = torch.cat([run.activations.pattern0[0].flatten(), run.activations.pattern1[0]]).numpy()
    weights = weights[weights > 0]
    np.testing.assert_allclose([opacity for _, opacity in cells(svg)], weights, atol=1e-5)
    problem = problem_from_tokens(TASK, run.sequences.tokens[0])
    labels = [*(f"{letter} {value}" for letter, value in problem.assignments), "+", problem.left, problem.right, "="]
    assert " ".join(map(str, labels)) in words(svg)


def test_neurons_that_are_never_on_are_not_drawn():
    silent = Subject(small_parameters() | {"blocks.1.mlp.W_in": torch.zeros(16, 32)}, Split(TASK, SPLIT), DATA)
    for judged in (subject(), silent):
        points = frequencies(judged).panels[0].count('href="#neurons-C')
        assert points == judged.once(neuron_frequencies).live.sum()
    assert points == 0, "the silent model has neurons that are on"


def test_step_0_has_a_place():
    curve = TrajectorySubject((0, 3), (subject(1), subject()))
    later = TrajectorySubject((1, 3), curve.subjects)
    assert learning(curve).panels == learning(later).panels
    assert "Step 0 is drawn at 1" in learning(curve).caption
    assert "Step 0" not in learning(later).caption


def test_heat_is_opacity():
    values = np.array([[2.0, -1.0], [0.5, 0.0]])
    svg = panel("x", "d", lambda figure: heat(figure.subplots(), values, 2))
    assert cells(svg) == [("positive", 1), ("negative", 0.5), ("positive", 0.25)]


def test_panel_is_described_and_sizes_with_the_page():
    ((tag, attributes), *_) = Reader(panel("x", 'a "b" < c', lambda figure: None)).elements
    assert (tag, attributes["role"], attributes["aria-label"]) == ("svg", "img", 'a "b" < c')
    assert attributes.keys() == {"role", "aria-label", "viewbox"}, "a width or height would fix its size"


def test_logarithmic_axis_has_plain_numbers():
    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot([1, 10000], [0, 1])
        logarithmic(axes)

    assert {"1", "10000"} <= set(words(panel("x", "d", draw)).split())
