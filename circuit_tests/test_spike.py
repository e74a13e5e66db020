"""The sudden rise of left-variable accuracy: claims of `aa_core.claims.spike`."""

from circuit_tests.plugin import claim_test

test_spike = claim_test("spike")
