"""blocks.0 attends from constants to their variables: claims of `aa_core.claims.previous_token`."""

from circuit_tests.plugin import claim_test

test_previous_token = claim_test("previous-token")
