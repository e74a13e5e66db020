"""One vector before the MLP, with and without variables: claims of `aa_core.claims.representation`."""

from circuit_tests.plugin import claim_test

test_representation = claim_test("shared-representation")
