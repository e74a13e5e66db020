"""Which entries of a file of expectations are warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from aa_core.claims.expectations import Expectation, Expectations, load_expectations
from aa_core.claims.registry import CLAIMS
from aa_core.report.seeds_page import load_study
from aa_core.statistics import Verdict
from aa_core.sweeps.record import config_of
from aa_core.training.recipes import RECIPES, recipe_name

JUDGED = [(claim, model) for claim in ("order/ratio", "spike/exists") for model in ("seed3", "seed4")]


@pytest.mark.parametrize(
    ("claim", "model", "stale"),
    [
        ("order/ratio", "seed3", False),
        ("spike/*", "*", False),
        ("spike/*", "seed[0-9]", False),
        ("spike/*", "seed1", False),  # may be judged another time
        ("spike/*", "fixture", False),
        ("spike/none", "seed3", True),
        ("spike/none", "seed1", True),
        ("order/ratio", "sede3", True),
        ("order/ratio", "seedling", True),
    ],
)
def test_entries_that_can_match_nothing_are_named(claim: str, model: str, stale: bool) -> None:
    entry = Expectation(claim=claim, model=model, reason="known")
    assert Expectations([entry]).unmatched(JUDGED) == [entry] * stale


def test_a_reason_is_one_line() -> None:
    assert Expectation(claim="a/b", reason=" two\n lines ").reason == "two lines"


STUDIES = Path(__file__).parents[3] / "docs/seeds"
FILES = sorted((Path(__file__).parents[2] / "expectations").glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_committed_expectations_are_of_claims_seeds_and_recipes_that_exist(path: Path) -> None:
    assert path.stem in RECIPES
    entries = load_expectations(path).entries
    judged = [(claim.id, f"seed{seed}") for claim in CLAIMS for seed in range(100)]
    assert Expectations(entries).unmatched(judged) == []
    assert all(entry.model.startswith("seed") for entry in entries), "of one seed or some, never of all models"


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_committed_expectations_are_what_the_studies_of_the_recipe_found(path: Path) -> None:
    expectations = load_expectations(path)
    studies = [record for study in STUDIES.glob("*.json") for record in load_study(study).records]
    records = [record for record in studies if recipe_name(config_of(record.config)) == path.stem]
    assert len(records) >= 16
    for record in records:
        model = f"seed{record.config['seed']}"
        assert record.claims is not None
        judged = {name: claim.verdict for name, claim in record.claims.items() if claim.verdict is not Verdict.SKIPPED}
        expected = {name for name in judged if expectations.find(name, model) is not None}
        assert expected == {name for name, verdict in judged.items() if verdict is not Verdict.HOLDS}, model


def test_every_recipe_has_its_file() -> None:
    assert {path.stem for path in FILES} == set(RECIPES)
