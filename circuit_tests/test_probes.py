"""What linear probes read, and where: claims of `aa_core.claims.probes`."""

from circuit_tests.plugin import claim_test

test_probes = claim_test("probes")
