"""Options that name the model under test, and the report on the claims judged on it."""

from __future__ import annotations

import hypothesis
import pytest
import torch
from hypothesis.database import DirectoryBasedExampleDatabase

from aa_core.claims.expectations import Expectations
from aa_core.runs import default_root
from circuit_tests import plugin

hypothesis.settings.register_profile("default", deadline=None, derandomize=True)
# --hypothesis-profile explore: other cases at every run, more of them, and those that failed before first.
hypothesis.settings.register_profile(
    "explore",
    deadline=None,
    derandomize=False,
    max_examples=1000,
    database=DirectoryBasedExampleDatabase(default_root() / "hypothesis"),
)
hypothesis.settings.load_profile("default")


def pytest_configure(config: pytest.Config) -> None:
    plugin.check_options(config)
    torch.set_num_threads(1)  # small products; several processes at once must not fight for cores


def pytest_addoption(parser: pytest.Parser) -> None:
    plugin.add_options(parser)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return plugin.header(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    plugin.leave_out_own_tests(config, items)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    plugin.parametrize_models(metafunc)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    plugin.print_summary(terminalreporter)


@pytest.fixture(scope="session")
def model_under_test(request: pytest.FixtureRequest) -> plugin.ModelUnderTest:
    return request.config.stash.get(plugin.LOADED, None) or plugin.load_model(request.config, request.param)


@pytest.fixture(scope="session")
def expectations(request: pytest.FixtureRequest) -> Expectations:
    return plugin.expectations_of(request.config)
