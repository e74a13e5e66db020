"""What `=` attends to in both layers: claims of `aa_core.claims.routing`."""

from circuit_tests.plugin import claim_test

test_routing = claim_test("routing")
