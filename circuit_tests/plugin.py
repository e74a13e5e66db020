"""How pytest judges claims: which models, one test a claim, and the table at the end."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aa_core.cli.options import OF_A_SEED
from aa_core.errors import InputError
from aa_core.seeds import parse_seeds

if TYPE_CHECKING:
    from aa_core.claims.claim import Claim
    from aa_core.claims.expectations import Expectations

RECORD = "claim"
DRAWN = "AA_DRAWN_SEED"
MODELS = pytest.StashKey[list[str]]()
LOADED = pytest.StashKey["ModelUnderTest"]()
WIDTH = 100


@dataclass(frozen=True)
class ModelUnderTest:
    """A loaded model: what claims are judged on, and what reports say of it."""

    name: str
    subject: Any
    record: dict[str, Any]


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("claims", "the model whose claims are judged (default: the committed fixture)")
    group.addoption("--checkpoint", metavar="PATH", help="a checkpoint file, or a folder of checkpoints along training")
    group.addoption("--seeds", metavar="SEEDS", help="runs of seeds: 3, 0-4, 0,2,5-7, any, all; also from AA_SEEDS")
    group.addoption(
        "--recipe", default=OF_A_SEED["recipe"], metavar="NAME", help="training recipe of --seeds: paper or fast"
    )
    group.addoption("--expectations", metavar="FILE", help="claims known to fail, or not to be judged, with reasons")
    group.addoption("--split-seed", type=int, metavar="N", help="split of a foreign checkpoint: seed of the pairs")
    group.addoption("--train-fraction", type=float, metavar="F", help="... share of pairs in training")
    group.addoption("--never-left", metavar="LETTERS", help="... letters never on the left in training")
    group.addoption("--never-right", metavar="LETTERS", help="... letters never on the right in training")


def _models(config: pytest.Config) -> list[str]:
    """Names of the models under test: `fixture`, a path, or `seed3`."""
    chosen = config.stash.get(MODELS, None)
    if chosen is None:
        checkpoint, seeds = config.getoption("checkpoint"), config.getoption("seeds")
        if "" in (checkpoint, seeds):
            raise pytest.UsageError("--checkpoint or --seeds is empty: is a variable not set?")
        if checkpoint and seeds:
            raise pytest.UsageError("--checkpoint and --seeds name different models: give one of them")
        seeds = seeds or (None if checkpoint else os.environ.get("AA_SEEDS"))
        if seeds == "any":  # drawn once, for every process of pytest-xdist too
            seeds = os.environ.setdefault(DRAWN, str(parse_seeds("any")[0]))
        try:
            chosen = [f"seed{seed}" for seed in parse_seeds(seeds)] if seeds else [checkpoint or "fixture"]
        except InputError as error:
            raise pytest.UsageError(str(error)) from error
        config.stash[MODELS] = chosen
    return chosen


def check_options(config: pytest.Config) -> None:
    """Refuse what cannot work before anything is collected.

    Raises:
        pytest.UsageError: the options contradict each other, or a file cannot be loaded.
    """
    models = _models(config)
    of_seeds = config.getoption("checkpoint") is None and models[0].startswith("seed")
    if config.getoption("recipe") != OF_A_SEED["recipe"] and not of_seeds:
        raise pytest.UsageError("--recipe of no seed: give --seeds too, or leave it out")
    try:
        expectations_of(config)
        if config.getoption("checkpoint") is not None:
            config.stash[LOADED] = load_model(config, models[0])
    except InputError as error:
        raise pytest.UsageError(str(error)) from error


def header(config: pytest.Config) -> list[str]:
    """Names the models, and for seeds the line that judges the same ones again."""
    models = _models(config)
    lines = [f"claims judged on: {', '.join(models)}"]
    named = config.getoption("checkpoint") is not None
    if models[0].startswith("seed") and not named:
        seeds = ",".join(model.removeprefix("seed") for model in models)
        recipe = config.getoption("recipe")
        lines.append(f"to reproduce: pytest circuit_tests -m slow --recipe {recipe} --seeds {seeds}")
    if (named or models != ["fixture"]) and "not slow" in (config.getoption("-m") or ""):
        lines.append("the claims are marked slow: add -m slow to judge them")
    return lines


def leave_out_own_tests(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of this suite and of `aa_core` where a model is named, since they say nothing of it."""
    if config.getoption("checkpoint") is None and _models(config) == ["fixture"]:
        return
    places = [Path(__file__).parent / name for name in ("meta", "bench", "test_sweeps.py")]
    own = [item for item in items if any(item.path.is_relative_to(place) for place in places)]
    if own:
        items[:] = [item for item in items if item not in own]
        config.hook.pytest_deselected(items=own)


def parametrize_models(metafunc: pytest.Metafunc) -> None:
    if "model_under_test" in metafunc.fixturenames:
        models = _models(metafunc.config)
        ids = [_name(model, metafunc.config) for model in models]
        metafunc.parametrize("model_under_test", models, indirect=True, ids=ids, scope="session")


def load_model(config: pytest.Config, name: str) -> ModelUnderTest:
    """Load, or train, a model."""
    from aa_core.claims.subjects import as_subject
    from aa_core.cli.options import subject_checkpoints
    from aa_core.report.record import subject_record

    is_seed = name.startswith("seed") and config.getoption("checkpoint") is None
    options = Namespace(
        checkpoint=Path(checkpoint) if (checkpoint := config.getoption("checkpoint")) is not None else None,
        seed=int(name.removeprefix("seed")) if is_seed else None,
        recipe=config.getoption("recipe"),
        cache=None,
        device="cpu",
        threads=1,
        split_seed=config.getoption("split_seed"),
        train_fraction=config.getoption("train_fraction"),
        never_left=config.getoption("never_left"),
        never_right=config.getoption("never_right"),
    )
    loaded = subject_checkpoints(options)
    judged = as_subject(loaded)
    return ModelUnderTest(_name(name, config), judged, subject_record(loaded, judged))


def _name(model: str, config: pytest.Config) -> str:
    """What expectations and reports call a model."""
    return model if config.getoption("checkpoint") is None else "checkpoint"


def expectations_of(config: pytest.Config) -> Expectations:
    """The file of expectations that `--expectations` names."""
    from aa_core.claims.expectations import load_expectations

    path = config.getoption("expectations")
    return load_expectations(None if path is None else Path(path))


def claim_test(family: str) -> Callable[..., None]:
    """A test that judges every claim of a family on every model under test, an item each."""
    from aa_core.claims.registry import CLAIMS, interval_alpha
    from aa_core.claims.verification import verify
    from aa_core.report.record import claim_record
    from aa_core.report.table import explained_text
    from aa_core.statistics import Verdict

    claims = [claim for claim in CLAIMS if claim.family == family]

    @pytest.mark.slow
    @pytest.mark.parametrize("claim", claims, ids=[claim.id for claim in claims])
    def test(
        claim: Claim,
        model_under_test: ModelUnderTest,
        expectations: Expectations,
        record_property: Callable[[str, object], None],
        pytestconfig: pytest.Config,
    ) -> None:
        alpha = interval_alpha(len(_models(pytestconfig)))
        expected = {claim.id: expectations.find(claim.id, model_under_test.name)}
        with np.errstate(all="ignore"):  # what overflows is nan, and nan meets no threshold
            [result] = verify(model_under_test.subject, [claim], alpha, expected)
        state = model_under_test.record["state"]["name"]
        record = {"model": model_under_test.name, "state": state, **claim_record(result)}
        for name in ("id", "verdict", "measured", "threshold", "n", "interval"):
            record_property(name, record[name])
        record_property(RECORD, json.dumps(record))
        if result.verdict is Verdict.SKIPPED:
            pytest.skip(result.reason)
        if result.expectation is not None:
            reason = result.expectation.reason
            if result.surprises:
                pytest.fail(f"holds, but is expected to fail ({reason}): remove its entry", pytrace=False)
            pytest.xfail(reason)
        if result.surprises:
            findings = [record, *record["conditions"]]
            lines = [
                f"  {finding['quantity']} = {explained_text(finding)}, expected {finding['threshold']}"
                for finding in findings
                if finding["verdict"] != Verdict.HOLDS
            ]
            pytest.fail("\n".join([f"{record['verdict']}: {claim.statement} ({claim.id})", *lines]), pytrace=False)

    return test


def print_summary(reporter: pytest.TerminalReporter) -> None:
    """The table of all judged claims, from the reports, so that it is complete under pytest-xdist too."""
    from rich.console import Console

    from aa_core.claims.registry import CLAIMS
    from aa_core.report.table import pass_counts_table, results_table, summary_line

    records = [
        json.loads(value)
        for reports in reporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == RECORD and report.when == "call"
    ]
    if not records:
        return
    order = {claim.id: place for place, claim in enumerate(CLAIMS)}
    records.sort(key=lambda record: (record["model"], order[record["id"]]))
    states = {record["model"]: record["state"] for record in records}
    if len(states) == 1:
        records = [{key: value for key, value in record.items() if key != "model"} for record in records]
    text = StringIO()
    Console(file=text, width=max(reporter._tw.fullwidth, WIDTH)).print(results_table(records))
    reporter.section("claims")
    for model, state in states.items():
        reporter.write_line(f"state of {model}: {state}")
    reporter.write_line(text.getvalue() + summary_line(records))
    n_models = len({record.get("model") for record in records})
    if n_models > 1:
        text = StringIO()
        Console(file=text, width=max(reporter._tw.fullwidth, WIDTH)).print(pass_counts_table(records))
        reporter.section(f"claims over {n_models} models")
        reporter.write_line(text.getvalue())
    judged = [(claim.id, _name(model, reporter.config)) for claim in CLAIMS for model in _models(reporter.config)]
    for entry in expectations_of(reporter.config).unmatched(judged):
        reporter.write_line(
            f"warning: the expectation {entry.claim!r} for {entry.model!r} matches nothing", yellow=True
        )
