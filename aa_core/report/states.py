"""What a state means beside the other columns of a table of runs."""

from __future__ import annotations

from aa_core.circuits.state import HALF, LETTERS, SOLVED

STATES = f"""\
States are a ladder, judged at the end of a run: it stands below the first rung that it misses, whatever lies above.
`memorising` misses {HALF:g} of the held-out pairs, and may look up variables all the same; `composes` asks for
{SOLVED:g} of the way from guessing to all right in each kind, and `refined` for {LETTERS["1-var"][1]:g} (one variable)
and {LETTERS["2-var"][1]:g} (two) on the worst restricted letter. A phase asks for 95 % of a whole pool, once. So a run
can be `refined` without a phase, or have had every phase and then lost a letter.
"""
