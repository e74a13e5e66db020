"""Which entries of a file of expectations are warned of."""

from __future__ import annotations

import pytest

from aa_core.claims.expectations import Expectation, Expectations

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
