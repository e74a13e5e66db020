"""`aa verify`: which claims hold for a model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from aa_core.cli.options import add_subject_options, path, subject_checkpoints
from aa_core.cli.outputs import check_outputs

if TYPE_CHECKING:
    from aa_core.claims.claim import Result

EXIT_CODES = "exit code: 0 all applicable claims hold, 1 one fails, 2 bad input, 3 one is undecided, or none was judged"


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "verify",
        help="which claims hold: for the fixture, a checkpoint, a folder of them, or a seed",
        epilog=EXIT_CODES,
    )
    add_subject_options(parser)
    parser.add_argument("--claims", metavar="IDS", help="only these, by id, family or pattern, separated by commas")
    parser.add_argument(
        "--expectations",
        type=path,
        metavar="FILE",
        help="claims known to fail or not to be judged, with reasons (TOML)",
    )
    parser.add_argument("--json", type=path, metavar="FILE", help="write the results to FILE as JSON")
    parser.add_argument("--html", type=path, metavar="FILE", help="write the results to FILE as a page with plots")
    parser.set_defaults(run=run, goes_on=True)


def run(options: argparse.Namespace) -> int:
    """Judge the claims, print the table, write the reports."""
    import numpy as np

    from aa_core.claims.expectations import load_expectations
    from aa_core.claims.registry import CLAIMS, interval_alpha, select_claims
    from aa_core.claims.subjects import as_subject
    from aa_core.claims.verification import verify
    from aa_core.cli.progress import bar
    from aa_core.files import write_atomically
    from aa_core.report.record import claim_record, json_report, subject_record
    from aa_core.report.table import print_results, terminal

    inputs = {"--checkpoint": options.checkpoint, "--expectations": options.expectations}
    check_outputs({"--json": options.json, "--html": options.html}, inputs)
    if options.html is not None:
        import aa_core.report.page  # noqa: F401 - refuses where the libraries for plots are missing
    claims = select_claims(options.claims)
    expectations = load_expectations(options.expectations)
    model = model_name(options)
    for entry in expectations.unmatched((claim.id, model) for claim in CLAIMS):
        print(f"aa: warning: no claim on {model} matches the expectation {entry.claim!r}", file=sys.stderr)
    checkpoints = subject_checkpoints(options)
    judged = as_subject(checkpoints)
    expected = {claim.id: expectations.find(claim.id, model) for claim in claims}
    with np.errstate(all="ignore"):  # what overflows is nan, and nan meets no threshold
        results = verify(judged, claims, interval_alpha(), expected, lambda items: bar(items, len(claims), "claims"))
        subject, records = subject_record(checkpoints, judged), [claim_record(result) for result in results]
    print_results(terminal(), subject, records)
    if options.json is not None:
        write_atomically(options.json, json_report(subject, records).encode())
    if options.html is not None:
        from aa_core.report.page import html_report

        write_atomically(options.html, html_report(subject, records, judged).encode())
    return exit_code(results)


def model_name(options: argparse.Namespace) -> str:
    """The name of the model in a file of expectations: `seed3`, `checkpoint` or `fixture`."""
    if options.seed is not None:
        return f"seed{options.seed}"
    return "fixture" if options.checkpoint is None else "checkpoint"


def exit_code(results: Iterable[Result]) -> int:
    """1 where a claim fails, or holds although a failure is expected; else 3 where one is undecided, or none is judged
    for want of what they need; else 0.
    """
    from aa_core.statistics import Verdict

    results = list(results)
    surprises = {result.verdict.value for result in results if result.surprises}
    if surprises & {"fails", "holds"}:
        return 1
    unjudged = bool(results) and all(
        result.verdict is Verdict.SKIPPED and result.expectation is None for result in results
    )
    return 3 if surprises or unjudged else 0
