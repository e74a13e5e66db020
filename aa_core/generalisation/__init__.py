"""Layouts of sequences, what a model does on all operand pairs of one, and the search for those it fails on."""
