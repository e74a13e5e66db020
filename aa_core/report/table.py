"""Results in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from aa_core.claims.claim import Finding, Result
from aa_core.statistics import Verdict

STYLES = {Verdict.HOLDS: "green", Verdict.FAILS: "bold red", Verdict.UNDECIDED: "yellow", Verdict.SKIPPED: "dim"}


def measured_text(finding: Finding) -> str:
    """A value with its interval, or with the number of cases."""
    measurement = finding.measurement
    text = f"{measurement.value:.4g}"
    if finding.interval is not None:
        low, high = finding.interval
        return f"{text} [{low:.4g}, {high:.4g}]"
    if measurement.exhaustive:
        return f"{measurement.count}/{measurement.n} = {text}"
    return text if measurement.n is None else f"{text} (n={measurement.n})"


def subject_line(subject: dict[str, Any]) -> str:
    """One line that says what was judged."""
    steps = subject["steps"]
    where = f"{len(steps)} checkpoints, the last at step {subject['step']}" if steps else f"step {subject['step']}"
    split = subject["split"]
    return (
        f"{subject['path']}: {subject['format']}, {where}, weights {subject['hash'][:12]}; "
        f"split: f={split['train_fraction']:g}, seed {split['seed']}, "
        f"never left {split['never_left'] or '-'}, never right {split['never_right'] or '-'}"
    ).replace("step None", "step unknown")


def results_table(results: Sequence[Result]) -> Table:
    """Claim, measured value, threshold and verdict; conditions are shown where they decide a verdict."""
    table = Table(pad_edge=False)
    table.add_column("claim", overflow="fold")
    table.add_column("measured", overflow="fold")
    table.add_column("threshold", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for result in results:
        style = STYLES[result.verdict]
        if not result.findings:
            table.add_row(result.claim.id, result.reason, "", result.verdict, style=style)
            continue
        headline, *conditions = result.findings
        table.add_row(
            result.claim.id,
            _with_note(headline),
            str(headline.criterion.threshold),
            f"[{style}]{result.verdict}[/]",
        )
        for finding in conditions:
            if finding.verdict is not Verdict.HOLDS:
                table.add_row(
                    f"  and {finding.criterion.quantity}",
                    _with_note(finding),
                    str(finding.criterion.threshold),
                    f"[{STYLES[finding.verdict]}]{finding.verdict}[/]",
                    style="dim",
                )
    return table


def _with_note(finding: Finding) -> str:
    note = finding.measurement.note
    return measured_text(finding) + (f"\n[dim]{note}[/]" if note and finding.verdict is not Verdict.HOLDS else "")


def summary_line(results: Sequence[Result]) -> str:
    """Counts of verdicts."""
    counts = Counter(result.verdict for result in results)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def print_results(console: Console, subject: dict[str, Any], results: Sequence[Result]) -> None:
    """Print what was judged, the table, and the counts."""
    console.print(subject_line(subject), highlight=False, soft_wrap=True)
    console.print(results_table(results))
    console.print(summary_line(results), highlight=False)
