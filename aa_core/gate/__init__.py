"""The regression gate: invariants of training, and retrained seeds against a committed baseline."""
