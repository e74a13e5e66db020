"""The described circuit by itself: claims of `aa_core.claims.isolated_circuit`."""

from circuit_tests.plugin import claim_test

test_isolated_circuit = claim_test("circuit")
