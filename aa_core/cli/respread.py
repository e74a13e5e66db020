"""`aa respread`: does a run bind later, or never, when its variables collapse?"""

from __future__ import annotations

import argparse
from typing import Any

from aa_core.cli.options import path, run_config, use_threads
from aa_core.cli.outputs import check_outputs
from aa_core.errors import InputError

EVERY = 200


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "respread", help="train on from an early state with the variables made alike or spread anew"
    )
    parser.add_argument("--seed", type=int, required=True, metavar="N", help="seed of the run")
    parser.add_argument("--recipe", default="paper", metavar="NAME", help="training recipe: paper (default) or fast")
    parser.add_argument("--start", type=int, default=1000, metavar="STEP", help="where the branches part (1000)")
    parser.add_argument("--until", type=int, default=4400, metavar="STEP", help="where they end (4400)")
    parser.add_argument(
        "--branches",
        metavar="NAMES",
        help="only these, separated by commas: unchanged, shrunk, merged, fresh, forgetful, faster (default: all)",
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of PyTorch (default 1)")
    parser.add_argument("--json", type=path, metavar="FILE", help="write every point of every branch to FILE")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train the branches, print where each gets to, write the points."""
    from aa_core.cli.progress import bar
    from aa_core.experiments.respread import branch_points
    from aa_core.files import write_atomically
    from aa_core.report.respread_page import branch_lines, points_json
    from aa_core.report.table import terminal

    use_threads(options)
    config = run_config(options, options.seed)
    branches = _branches(options.branches)
    for name in ("start", "until"):
        if not 0 < getattr(options, name) <= config.steps or getattr(options, name) % EVERY:
            raise InputError(
                f"--{name} is {getattr(options, name)}, expected a multiple of {EVERY} up to {config.steps}"
            )
    if options.until <= options.start:
        raise InputError(f"--until is {options.until}, expected a step after --start ({options.start})")
    check_outputs({"--json": options.json})
    total = len(branches) * ((options.until - options.start) // EVERY + 1)
    points = list(bar(branch_points(config, options.start, options.until, branches, EVERY), total, "branches"))
    for line in branch_lines(points):
        terminal().print(line, soft_wrap=True)
    if options.json is not None:
        write_atomically(options.json, points_json(options.recipe, options.seed, points).encode())
    return 0


def _branches(names: str | None) -> list[Any]:
    from aa_core.experiments.respread import BRANCHES

    chosen = list(BRANCHES) if names is None else names.split(",")
    for name in chosen:
        if name not in BRANCHES or chosen.count(name) > 1:
            raise InputError(f"--branches {name!r}: expected some of {', '.join(BRANCHES)}, each once")
    return [BRANCHES[name] for name in chosen]
