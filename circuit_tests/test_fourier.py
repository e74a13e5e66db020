"""The MLP adds with single frequencies: claims of `aa_core.claims.fourier`."""

from circuit_tests.plugin import claim_test

test_fourier = claim_test("fourier")
