"""`aa train`: train seeds, or find them in the cache."""

from __future__ import annotations

import argparse
from typing import Any

from aa_core.cli.options import add_run_options, run_config, trained_run, use_threads


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "train", help="train a seed, or find it in the cache; goes on with what was interrupted"
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, metavar="N", help="one seed")
    which.add_argument("--seeds", metavar="SEEDS", help="several: 0-4, 0,2,5-7, any, all")
    add_run_options(parser)
    parser.set_defaults(run=run, goes_on=True)


def run(options: argparse.Namespace) -> int:
    """Train each seed and say where its run is and how well it answers."""
    from aa_core.seeds import parse_seeds

    use_threads(options)
    seeds = [options.seed] if options.seed is not None else parse_seeds(options.seeds)
    for seed in seeds:
        run_config(options, seed)  # refuse a bad one before the first is trained
    for seed in seeds:
        trained = trained_run(options, seed)
        last = trained.metrics()[-1]
        answers = "  ".join(f"{kind} {last[f'full-prefix/{kind}']:.3f}" for kind in ("0-var", "1L", "1R", "2-var"))
        print(f"{trained.folder}\n  seed {seed}, step {last['step']:g}, loss {last['loss']:.4f}, {answers}")
    return 0
