"""Pairs and positions that training never showed: claims of `aa_core.claims.generalisation`."""

from circuit_tests.plugin import claim_test

test_generalisation = claim_test("generalisation")
