"""The two-layer transformer: sizes, weights, and two forward passes that agree."""
