"""Which tests are run on a model that is named."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from circuit_tests import plugin


@pytest.mark.parametrize(
    ("models", "kept"),
    [
        (["fixture"], ["test_accuracy.py", "meta/test_cli.py", "bench/test_speed.py"]),
        (["seed3", "seed4"], ["test_accuracy.py"]),
        (["some/meta.pth"], ["test_accuracy.py"]),
    ],
)
def test_tests_of_the_suite_itself_are_left_out_for_other_models(models: list[str], kept: list[str]) -> None:
    names = ["test_accuracy.py", "meta/test_cli.py", "bench/test_speed.py"]
    items: list[Any] = [SimpleNamespace(path=Path("meta/circuit_tests") / name, name=name) for name in names]
    deselected: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items))
    config: Any = SimpleNamespace(stash={plugin.MODELS: models}, hook=hook)
    plugin.leave_out_own_tests(config, items)
    assert [item.name for item in items] == kept
    assert sorted(item.name for item in [*items, *deselected]) == sorted(names), "what is left out is said"
