"""Addition alone: claims of `aa_core.claims.addition`."""

from circuit_tests.plugin import claim_test

test_addition = claim_test("addition")
