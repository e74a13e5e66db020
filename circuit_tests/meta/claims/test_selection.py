"""Which tests are run on a model that is named."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from circuit_tests import plugin

SUITE = Path(plugin.__file__).parent
NAMES = ["test_accuracy.py", "meta/test_docs.py", "meta/cli/test_input.py", "bench/test_speed.py", "test_sweeps.py"]


@pytest.mark.parametrize(
    ("models", "checkpoint", "kept"),
    [
        (["fixture"], None, NAMES),
        (["seed3", "seed4"], None, ["test_accuracy.py"]),
        (["some/meta.pth"], "some/meta.pth", ["test_accuracy.py"]),
        (["fixture"], "fixture", ["test_accuracy.py"]),
    ],
)
def test_tests_of_the_suite_itself_are_left_out_for_other_models(
    models: list[str], checkpoint: str | None, kept: list[str]
) -> None:
    items: list[Any] = [SimpleNamespace(path=SUITE / name, name=name) for name in NAMES]
    deselected: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items))
    config: Any = SimpleNamespace(
        stash={plugin.MODELS: models}, hook=hook, getoption={"checkpoint": checkpoint}.__getitem__
    )
    plugin.leave_out_own_tests(config, items)
    assert [item.name for item in items] == kept
    assert sorted(item.name for item in [*items, *deselected]) == sorted(NAMES), "what is left out is said"


@pytest.mark.parametrize(
    ("models", "options", "expected"),
    [
        (["fixture"], {"-m": "not slow"}, ["claims judged on: fixture"]),
        (
            ["seed3", "seed4"],
            {"-m": "not slow", "recipe": "fast"},
            [
                "claims judged on: seed3, seed4",
                "to reproduce: pytest circuit_tests -m slow --recipe fast --seeds 3,4",
                "the claims are marked slow: add -m slow to judge them",
            ],
        ),
        (["seed3/model.pth"], {"-m": "slow", "checkpoint": "seed3/model.pth"}, ["claims judged on: seed3/model.pth"]),
    ],
)
def test_the_header_says_what_is_judged_and_how_to_again(
    models: list[str], options: dict[str, str], expected: list[str]
) -> None:
    config: Any = SimpleNamespace(stash={plugin.MODELS: models}, getoption=options.get)
    assert plugin.header(config) == expected
