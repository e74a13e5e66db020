"""`aa fixture`: rebuild the committed fixture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aa_core.cli.options import add_run_options, path, trained_run, use_threads


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "fixture", help="rebuild the committed fixture: train a seed, or find it, and keep a thinned trajectory"
    )
    parser.add_argument("--seed", type=int, default=2, metavar="N", help="seed of the run (default 2)")
    parser.add_argument("--output", type=path, default=Path("fixtures/paper"), metavar="DIR", help="folder to replace")
    add_run_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train or find the run, write the fixture, say which steps it keeps."""
    from aa_core.fixtures import write_fixture

    use_threads(options)
    steps = write_fixture(trained_run(options, options.seed), options.output)
    print(f"{options.output}: seed {options.seed}, steps {', '.join(map(str, steps))}")
    return 0
