"""`aa claims`: what can be claimed."""

from __future__ import annotations

import argparse
import itertools
from typing import Any

from aa_core.cli.options import path
from aa_core.cli.outputs import check_outputs


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("claims", help="list the claims, say all that is known of some, or write a page")
    parser.add_argument(
        "ids", nargs="?", metavar="IDS", help="say all of these: ids, families or patterns, with commas"
    )
    parser.add_argument("--markdown", type=path, metavar="FILE", help="write a page with all that is known of each")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print ids and statements, or all of some claims, or write the page."""
    check_outputs({"--markdown": options.markdown})
    from rich.table import Table

    from aa_core.claims.registry import CLAIMS, select_claims
    from aa_core.files import write_atomically
    from aa_core.report.claims_page import claim_entry, claims_page
    from aa_core.report.table import terminal
    from aa_core.sweeps.claims import SWEEP_CLAIMS

    claims = [*CLAIMS, *itertools.chain(*SWEEP_CLAIMS.values())]
    if options.markdown is not None:
        write_atomically(options.markdown, claims_page().encode())
        return 0
    if options.ids is not None:
        print("\n".join(map(claim_entry, select_claims(options.ids, claims))), end="")
        return 0
    table = Table(box=None, pad_edge=False)
    for column in ("claim", "form", "statement"):
        table.add_column(column, overflow="fold")
    for claim in claims:
        table.add_row(claim.id, claim.form, claim.statement)
    terminal().print(table, markup=False)
    return 0
