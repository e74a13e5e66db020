"""Measurements: pure functions from a model to numbers, one file a mechanism."""
