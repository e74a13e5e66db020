"""`aa fixture`: rebuild the committed fixture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aa_core.cli.options import add_run_options, path, run_store, trained_run, use_threads


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "fixture", help="rebuild the committed fixture: train a seed, or find it, and keep a thinned trajectory"
    )
    parser.add_argument(
        "--trained", action="store_true", help="rebuild fixtures/trained, the models whose training went wrong, instead"
    )
    parser.add_argument("--seed", type=int, default=2, metavar="N", help="seed of the run (default 2)")
    parser.add_argument("--output", type=path, default=Path("fixtures/paper"), metavar="DIR", help="folder to replace")
    add_run_options(parser)
    parser.set_defaults(run=run, goes_on=True)


def run(options: argparse.Namespace) -> int:
    """Train or find the runs, write the fixture, say what it keeps."""
    from aa_core.fixtures import write_fixture

    use_threads(options)
    if options.trained:
        return write_trained(options)
    steps = write_fixture(trained_run(options, options.seed), options.output)
    print(f"{options.output}: seed {options.seed}, steps {', '.join(map(str, steps))}")
    return 0


def write_trained(options: argparse.Namespace) -> int:
    """Train or find the runs of the trained controls and keep the weights after their last steps."""
    from aa_core.cli.progress import training_bar
    from aa_core.controls import TRAINED_CONTROLS
    from aa_core.files import read_bytes, write_atomically

    for name, control in TRAINED_CONTROLS.items():
        with training_bar(name, control.config.steps) as progress:
            trained = run_store(options).run(control.config, threads=options.threads, progress=progress)
        control.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(control.path, read_bytes(trained.final_path))
        print(control.path)
    return 0
