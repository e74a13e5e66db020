"""blocks.1 matches a variable with itself: claims of `aa_core.claims.identity`."""

from circuit_tests.plugin import claim_test

test_identity = claim_test("qk-identity")
