"""What came of the branches of `aa respread`: as JSON, a line each, and the table of `docs/stuck.md`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from aa_core.circuits.state import State
from aa_core.experiments.respread import BRANCHES, Point

BOUND = (State.BINDS, State.COMPOSES, State.REFINED)
COMPOSED = (State.COMPOSES, State.REFINED)
COLUMNS = (
    "seed",
    "branch",
    "from step",
    "to step",
    "spread at first",
    "least later",
    "at the end",
    "embeddings' spread at first",
    "at the end",
    "binding",
    "composes",
    "1L at the end",
    "1R",
    "2-var",
    "z",
)


def points_json(recipe: str, seed: int, points: Iterable[Point]) -> str:
    """The points as JSON, one a line, values to four digits."""
    lines = ",\n".join(json.dumps(_rounded(asdict(point))) for point in points)
    return f'{{"recipe": "{recipe}", "seed": {seed}, "points": [\n{lines}\n]}}\n'


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def branch_lines(points: Iterable[Point]) -> list[str]:
    """A line a branch: what became of it."""
    return [
        ", ".join(f"{name} {cell}" for name, cell in zip(COLUMNS[1:], _cells(branch), strict=True))
        for branch in _branches(points)
    ]


def branches_table(folder: Path) -> str:
    """The files that `aa respread --json` left in a folder, as a Markdown table in order of seeds and branches."""
    rows = [f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
    found = []
    for document in (json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")):
        branches = _branches(Point(**point) for point in document["points"])
        found += [(document["seed"], _place(branch), branch[0].step, _cells(branch)) for branch in branches]
    rows += [f"| {seed} | {' | '.join(cells)} |" for seed, _, _, cells in sorted(found)]
    return "\n".join(rows) + "\n"


def _place(branch: Sequence[Point]) -> int:
    return list(BRANCHES).index(branch[0].branch)


def _branches(points: Iterable[Point]) -> list[list[Point]]:
    found = [list(branch) for _, branch in groupby(points, lambda point: point.branch)]
    return sorted(found, key=_place)


def _cells(branch: Sequence[Point]) -> list[str]:
    first, last = branch[0], branch[-1]
    return [
        first.branch,
        str(first.step),
        str(last.step),
        f"{first.spread:.2f}",
        f"{min(point.spread for point in branch[1:]):.2f}",
        f"{last.spread:.2f}",
        f"{first.embedding_spread:.2f}",
        f"{last.embedding_spread:.2f}",
        _first_step(branch, BOUND),
        _first_step(branch, COMPOSED),
        *(f"{last.accuracy[kind]:.2f}" for kind in ("1L", "1R", "2-var")),
        f"{last.identity_z:.1f}",
    ]


def _first_step(branch: Sequence[Point], states: Sequence[State]) -> str:
    """The first step from which a branch is in one of some states, `-` without one."""
    return next((str(point.step) for point in branch if point.state in states), "-")
