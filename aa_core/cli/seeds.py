"""`aa seeds`: what differs from seed to seed."""

from __future__ import annotations

import argparse
from typing import Any

from aa_core.cli.options import path
from aa_core.cli.outputs import check_outputs


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("seeds", help="report studies of seeds: phases, states, and pass rates of claims")
    parser.add_argument("folder", type=path, metavar="DIR", help="folder of outputs of aa sweep seed=... --judge")
    parser.add_argument(
        "--markdown",
        type=path,
        metavar="FILE",
        help="write the page to FILE, and its figures to a folder beside it, instead of printing",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print or write the page."""
    check_outputs({"--markdown": options.markdown})
    from aa_core.report.seeds_page import seeds_page, write_seeds_page

    if options.markdown is None:
        print(seeds_page(options.folder), end="")
    else:
        write_seeds_page(options.folder, options.markdown)
    return 0
