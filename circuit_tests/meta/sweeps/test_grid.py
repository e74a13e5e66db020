"""The grammar of a sweep's grid."""

from __future__ import annotations

import dataclasses

import pytest

from aa_core.errors import InputError
from aa_core.sweeps.grid import FRACTION, Axis, grid, parse_axis
from aa_core.training.config import TrainConfig
from circuit_tests.meta.tiny import TINY


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("f", FRACTION, (0.06, 0.525, 0.99)),
        ("r", "split.two_variable_frequency", (0.01, 0.5, 0.99)),
        ("f=0.1,0.3", FRACTION, (0.1, 0.3)),
        ("r=0:1:2", "split.two_variable_frequency", (0.0, 1.0)),
        ("seed=0-2,7", "seed", (0, 1, 2, 7)),
        ("split.seed=3", "split.seed", (3,)),
        ("learning_rate=1e-3,2e-3", "learning_rate", (0.001, 0.002)),
        ("steps=100:300:3", "steps", (100, 200, 300)),
        ("precision=float32,bfloat16", "precision", ("float32", "bfloat16")),
        ("split.never_left=,kl", "split.never_left", ("", "kl")),
    ],
)
def test_axis(text: str, field: str, values: tuple[object, ...]) -> None:
    axis = parse_axis(text, 3)
    assert axis == Axis(field, values)  # pyright: ignore[reportArgumentType]
    assert [type(value) for value in axis.values] == [type(value) for value in values]


def test_default_grids_are_the_papers() -> None:
    for text, first, last in (("f", 0.06, 0.99), ("r", 0.01, 0.99)):
        values = parse_axis(text).values
        assert (len(values), values[0], values[-1]) == (20, first, last)


def test_grid_is_every_combination_the_last_axis_fastest() -> None:
    configs = grid(TrainConfig(), [parse_axis("f=0.1,0.3"), parse_axis("seed=0-1")])
    assert [(config.split.train_fraction, config.seed) for config in configs] == [
        (0.1, 0),
        (0.1, 1),
        (0.3, 0),
        (0.3, 1),
    ]
    assert {dataclasses.replace(config, seed=0, split=TrainConfig().split) for config in configs} == {TrainConfig()}


@pytest.mark.parametrize(
    "axes",
    [
        ("steps=8", "decay_steps=5"),
        ("decay_steps=5", "steps=8"),
        ("task.max_assignments=3", "task.n_ctx=10"),
        ("task.n_ctx=10", "task.max_assignments=3"),
    ],
)
def test_fields_are_checked_together_in_any_order(axes: tuple[str, str]) -> None:
    [config] = grid(TINY, [parse_axis(axis) for axis in axes])
    assert config != TINY
    with pytest.raises(InputError, match=r"decay_steps is 10.*the recipe's"):
        grid(TINY, [parse_axis("steps=8")])
