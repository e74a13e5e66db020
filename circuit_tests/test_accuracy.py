"""Accuracy where binding at random cannot help: claims of `aa_core.claims.accuracy`."""

from circuit_tests.plugin import claim_test

test_accuracy = claim_test("accuracy")
