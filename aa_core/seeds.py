"""The grammar of `--seeds`."""

from __future__ import annotations

import random
import re

from aa_core.errors import InputError

ANY_SEEDS = range(100)
ALL_SEEDS = range(16)
MOST_SEEDS = 10_000


def parse_seeds(text: str, name: str = "--seeds") -> list[int]:
    """Seeds from `3`, `0-4`, `0,2,5-7`, `all` (0 to 15) or `any` (one of 0 to 99, drawn anew each time).

    Args:
        text: the seeds.
        name: the option that they were given to, for the message.

    Returns:
        The seeds in increasing order, each once.

    Raises:
        InputError: the text is none of these.
    """
    if text == "all":
        return list(ALL_SEEDS)
    if text == "any":
        return [random.SystemRandom().choice(ANY_SEEDS)]
    seeds: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last - first >= MOST_SEEDS:
            raise InputError(
                f"{name} {text!r}: expected seeds such as 3, 0-4, 0,2,5-7, all (0 to 15) or any (one of 0 to 99)"
            )
        seeds.update(range(first, last + 1))
    return sorted(seeds)
