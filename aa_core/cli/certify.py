"""`aa certify`: every sequence of a finite domain judged, with a certificate that can be checked again."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aa_core.cli.options import add_subject_options, path, subject_checkpoints
from aa_core.errors import InputError

if TYPE_CHECKING:
    from aa_core.certificates.certificate import Certificate
    from aa_core.checkpoints import Checkpoint, Trajectory

EXIT_CODES = (
    "exit code: 0 judged, whatever was found, or the certificate holds; 1 the certificate is refused; 2 bad input"
)
MOST_JOBS = 256
MOST_FAILURES = 100_000
MOST_SAMPLE = 1_000_000


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "certify",
        help="judge every sequence of a finite domain, or check a certificate of that again",
        description="Judge every sequence of a finite domain and write a certificate, or check one from the weights. "
        "Work that is stopped goes on where it was when the command is run again.",
        epilog=EXIT_CODES,
    )
    work = parser.add_mutually_exclusive_group(required=True)
    work.add_argument(
        "--domain",
        metavar="NAME",
        help="0-var, 1-var-one-assignment, 2-var-two-assignments (minutes) or distractor-changes",
    )
    work.add_argument("--check", type=path, metavar="FILE", help="check a certificate: compute everything anew")
    work.add_argument(
        "--list", type=path, metavar="DIR", help="the certificates in a folder as a page, without the model"
    )
    parser.add_argument("--output", type=path, metavar="FILE", help="write the certificate to FILE")
    parser.add_argument("--prefix", metavar="TEXT", help='prefix of 0-var, such as "a=3, c=5" (default: PADs alone)')
    parser.add_argument("--pairs", metavar="WHICH", help="pairs of 0-var: all (default), seen or held-out")
    parser.add_argument("--sequence", metavar="TEXT", help='of distractor-changes, such as "c=17, b=42, b+19=?"')
    parser.add_argument("--failures", type=int, metavar="N", help="most failures to list (1000)")
    parser.add_argument("--sample", type=int, metavar="N", help="with --check: compute only N random chunks anew")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes of one thread each (default: one a core)")
    parser.add_argument("--markdown", type=path, metavar="FILE", help="with --list: write the page to FILE")
    add_subject_options(parser)
    parser.set_defaults(run=run, goes_on=True)


def run(options: argparse.Namespace) -> int:
    """Certify, check or list."""
    _check_options(options)
    if options.list is not None:
        return _list(options)
    return _certify(options) if options.check is None else _check(options)


def _certify(options: argparse.Namespace) -> int:
    from aa_core.certificates.catalogue import domain_of
    from aa_core.certificates.certification import FAILURE_LIMIT, Plan, certify
    from aa_core.cli.outputs import check_outputs
    from aa_core.cli.progress import counted_bar
    from aa_core.runs import default_root

    outputs = {"--output": options.output}
    check_outputs(outputs)  # before a run is trained, then again against what was read
    parameters = {name: getattr(options, name) for name in ("prefix", "pairs", "sequence")}
    given = {name: value for name, value in parameters.items() if value is not None}
    subject = subject_checkpoints(options)
    checkpoint = subject.final
    check_outputs(outputs, _inputs(subject))
    domain = domain_of(options.domain, given, checkpoint.split)
    limit = FAILURE_LIMIT if options.failures is None else options.failures
    plan = Plan(failure_limit=limit, jobs=_jobs(options))
    with counted_bar(f"{domain.name}, {domain.size:,} sequences") as progress:
        certificate = certify(domain, checkpoint, plan, options.cache or default_root(), progress, options.output)
    _print(certificate)
    return 0


def _check(options: argparse.Namespace) -> int:
    import numpy as np

    from aa_core.certificates.certificate import read_certificate
    from aa_core.certificates.checking import Check, check_certificate
    from aa_core.cli.progress import counted_bar

    file = read_certificate(options.check)
    certificate = file.certificate
    how = Check(options.sample, _jobs(options), np.random.default_rng())
    with counted_bar(f"check {options.check.name}") as progress:
        refusal = check_certificate(file, subject_checkpoints(options).final, how, progress)
    if refusal is not None:
        print(f"refused: {refusal.field}: {refusal.reason}")
        return 1
    print(certificate.claim)
    if how.is_full(certificate):
        print(f"holds: all {certificate.size:,} sequences were judged anew")
    else:
        print(
            f"not refused: {options.sample} of {len(certificate.chunks)} chunks (at random), the "
            f"{len(certificate.failures)} listed failures and the least margin were judged anew; the rest was not"
        )
    return 0


def _list(options: argparse.Namespace) -> int:
    from aa_core.cli.outputs import check_outputs
    from aa_core.files import write_atomically
    from aa_core.report.certificates_page import certificate_files, certificates_page, load_certificates

    listed = {f"--list ({file.name})": file for file in certificate_files(options.list)}
    check_outputs({"--markdown": options.markdown}, listed)
    page = certificates_page(load_certificates(options.list), options.list)
    if options.markdown is None:
        print(page, end="")
    else:
        write_atomically(options.markdown, page.encode())
    return 0


def _inputs(subject: Checkpoint | Trajectory) -> dict[str, Path]:
    """The files that a subject was read from."""
    from aa_core.checkpoints import Checkpoint

    checkpoints = (subject,) if isinstance(subject, Checkpoint) else subject.checkpoints
    return {f"--checkpoint ({checkpoint.path.name})": checkpoint.path for checkpoint in checkpoints}


def _jobs(options: argparse.Namespace) -> int:
    return (os.cpu_count() or 1) if options.jobs is None else options.jobs


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options of another kind of work, and numbers out of range."""
    of = {
        "--domain": ("output", "prefix", "pairs", "sequence", "failures", "jobs"),
        "--check": ("sample", "jobs"),
        "--list": ("markdown",),
    }
    [chosen] = [name for name in of if getattr(options, name[2:]) is not None]
    for option in sorted({option for names in of.values() for option in names} - set(of[chosen])):
        if getattr(options, option) is not None:
            raise InputError(f"--{option} does not go with {chosen}: leave one out")
    for option, least, most in (("jobs", 1, MOST_JOBS), ("failures", 0, MOST_FAILURES), ("sample", 1, MOST_SAMPLE)):
        value = getattr(options, option)
        if value is not None and not least <= value <= most:
            raise InputError(f"--{option} is {value}, expected {least} to {most}")


def _print(certificate: Certificate) -> None:
    """Print what was found, and the counts by division where answers are wrong."""
    from rich.text import Text

    from aa_core.report.table import terminal

    console = terminal()
    console.print(Text(certificate.claim), soft_wrap=True)
    console.print(
        Text(f"least margin {certificate.least_margin:g} logits: {certificate.least.problem}"), soft_wrap=True
    )
    for name, labels in certificate.counts.items():
        parts = (f"{label} {count.errors:,}/{count.size:,}" for label, count in labels.items())
        console.print(Text(f"errors by {name}: {', '.join(parts)}"), soft_wrap=True)
    n = certificate.jobs
    console.print(
        f"{certificate.seconds:g} s with {n} job{'s' * (n > 1)}, at most {certificate.process_mib:g} MiB each"
    )
