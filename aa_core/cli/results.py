"""`aa results`: reports of several models side by side."""

from __future__ import annotations

import argparse
from typing import Any

from aa_core.cli.options import path
from aa_core.cli.outputs import check_outputs


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("results", help="put reports of aa verify --json side by side")
    parser.add_argument("folder", type=path, metavar="DIR", help="folder of .json reports")
    parser.add_argument("--markdown", type=path, metavar="FILE", help="write the page to FILE instead of printing it")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print or write the page."""
    check_outputs({"--markdown": options.markdown})
    from aa_core.files import write_atomically
    from aa_core.report.results_page import results_page

    page = results_page(options.folder)
    if options.markdown is None:
        print(page, end="")
    else:
        write_atomically(options.markdown, page.encode())
    return 0
