"""The pull of the loss on the QK circuit: claims of `aa_core.claims.gradient`."""

from circuit_tests.plugin import claim_test

test_gradient = claim_test("gradient")
