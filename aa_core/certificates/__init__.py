"""Exhaustive checks over finite domains of sequences, as certificates that can be checked again."""
