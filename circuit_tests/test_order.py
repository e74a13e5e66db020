"""Order of learning: claims of `aa_core.claims.order`."""

from circuit_tests.plugin import claim_test

test_order = claim_test("order")
