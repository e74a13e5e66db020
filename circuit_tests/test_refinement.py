"""Letters on the side that training never shows: claims of `aa_core.claims.refinement`."""

from circuit_tests.plugin import claim_test

test_refinement = claim_test("refinement")
