"""`aa controls`: every claim against the models that must break it and the changes that may not."""

from __future__ import annotations

import argparse
from typing import Any

from aa_core.cli.options import add_subject_options, path, subject_checkpoints
from aa_core.cli.outputs import check_outputs


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "controls",
        help="judge every claim on broken models and exact symmetries",
        epilog="exit code: 0 every control breaks what it was built to break, 1 one does not, 2 bad input",
    )
    add_subject_options(parser)
    parser.add_argument("--claims", metavar="IDS", help="only these, by id, family or pattern, separated by commas")
    parser.add_argument("--json", type=path, metavar="FILE", help="write every verdict to FILE")
    parser.add_argument("--markdown", type=path, metavar="FILE", help="write a page to FILE")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what each control breaks and what is wrong; write the reports."""
    from rich.table import Table

    from aa_core.claims.registry import select_claims
    from aa_core.claims.subjects import as_subject
    from aa_core.cli.progress import bar
    from aa_core.controls import (
        BREAKING_CONTROLS,
        SYMMETRIES,
        control_matrix,
        matrix_faults,
        write_matrix,
    )
    from aa_core.files import write_atomically
    from aa_core.report.controls_page import controls_page
    from aa_core.report.table import terminal

    check_outputs({"--json": options.json, "--markdown": options.markdown}, {"--checkpoint": options.checkpoint})
    subject = as_subject(subject_checkpoints(options))
    matrix = control_matrix(
        subject,
        select_claims(options.claims),
        BREAKING_CONTROLS.values(),
        SYMMETRIES.values(),
        progress=lambda changes: bar(changes, len(changes), "controls"),
    )
    faults = matrix_faults(matrix)
    table = Table(box=None, pad_edge=False)
    for column in ("control", "claims failed", "of those made for it"):
        table.add_column(column)
    for name, broken in matrix.breaks().items():
        made_for_it = matrix.made_for(name)
        table.add_row(name, str(len(broken)), f"{len(set(made_for_it) & set(broken))} of {len(made_for_it)}")
    console = terminal()
    console.print(table)
    for fault in faults:
        console.print(f"fault: {fault}", markup=False)
    console.print(f"{len(matrix.claims)} claims, {len(matrix.rows)} verdicts, {len(faults)} faults")
    if options.json is not None:
        write_matrix(matrix, options.json)
    if options.markdown is not None:
        write_atomically(options.markdown, controls_page(matrix).encode())
    return 1 if faults else 0
