"""What exact transformations of a sequence must leave as it was: properties of `aa_core.generalisation.properties`."""

from __future__ import annotations

import numpy as np
import pytest

from aa_core.generalisation.properties import PROPERTIES, Property, judge_property
from aa_core.statistics import Verdict
from circuit_tests.plugin import ModelUnderTest


@pytest.mark.slow
@pytest.mark.parametrize("prop", PROPERTIES, ids=[prop.id for prop in PROPERTIES])
def test_property(prop: Property, model_under_test: ModelUnderTest) -> None:
    subject = model_under_test.subject
    final = subject.final
    with np.errstate(all="ignore"):  # what overflows is nan, and nan is no right answer
        judged = judge_property(final, prop)
    if judged.found.verdict is not Verdict.HOLDS:
        pytest.fail(judged.text(final), pytrace=False)
