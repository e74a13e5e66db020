"""`aa fixture`: rebuild the committed fixture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aa_core.cli.options import add_run_options, run_config, run_store


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "fixture", help="rebuild the committed fixture: train a seed, or find it, and keep a thinned trajectory"
    )
    parser.add_argument("--seed", type=int, default=2, metavar="N", help="seed of the run (default 2)")
    parser.add_argument("--output", type=Path, default=Path("fixtures/paper"), metavar="DIR", help="folder to replace")
    add_run_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train or find the run, write the fixture, say which steps it keeps."""
    from aa_core.cli.progress import training_bar
    from aa_core.fixtures import write_fixture

    config = run_config(options, options.seed)
    with training_bar(f"{options.recipe} seed {options.seed}") as progress:
        trained = run_store(options).run(config, device=options.device, threads=options.threads, progress=progress)
    steps = write_fixture(trained, options.output)
    print(f"{options.output}: seed {options.seed}, steps {', '.join(map(str, steps))}")
    return 0
