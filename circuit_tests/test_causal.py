"""Interventions: claims of `aa_core.claims.causal`."""

from circuit_tests.plugin import claim_test

test_causal = claim_test("causal")
