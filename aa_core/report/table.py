"""Results in the terminal, from the plain data of `aa_core.report.record`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aa_core.claims.across import pass_counts
from aa_core.statistics import Verdict

STYLES = {"holds": "green", "fails": "bold red", "undecided": "yellow", "skipped": "dim"}
WIDTH = 120  # where standard output is not a terminal

EXPECTED = " (expected)"
CONTRADICTS = " (expected to fail)"

Record = Mapping[str, Any]


def measured_text(record: Record) -> str:
    """A value with its interval, or with the number of cases: `0.99 [0.98, 1]`, `1039/1045 = 0.994`, `6.9 (n=12)`."""
    text = "undefined" if record["measured"] is None else f"{record['measured']:.4g}"
    if record["interval"] is not None:
        low, high = record["interval"]
        return f"{text} [{low:.4g}, {high:.4g}]"
    if record["count"] is not None:
        return f"{record['count']}/{record['n']} = {text}"
    return text if record["n"] is None else f"{text} (n={record['n']})"


def explained_text(record: Record) -> str:
    """The measured value, and what is known of it where it does not hold."""
    note = f"\n{record['note']}" if record["note"] and record["verdict"] != Verdict.HOLDS else ""
    return measured_text(record) + note


def subject_line(subject: Record) -> str:
    """One line that says what was judged."""
    steps = subject["steps"]
    step = "unknown" if subject["step"] is None else subject["step"]
    assumed = " (assumed)" if subject["split_assumed"] else ""
    where = f"{len(steps)} checkpoints, the last at step {step}" if steps else f"step {step}"
    split = subject["split"]
    return (
        f"{subject['path']}: {subject['format']}, {where}, weights {subject['hash'][:12]}; "
        f"split{assumed}: f={split['train_fraction']:g}, seed {split['seed']}, "
        f"never left {split['never_left'] or '-'}, never right {split['never_right'] or '-'}"
    )


def evidence_text(found: Record) -> str:
    """A measurement that a state rests on: `full prefixes, 1L 0.23, not >= 0.875`."""
    value = "undefined" if found["measured"] is None else f"{found['measured']:.3g}"
    return f"{found['quantity']} {value}{'' if found['met'] else ', not'} {found['threshold']}"


def state_texts(state: Record) -> dict[str, str]:
    """`state`, with its evidence, and along a training run the `first steps` of each."""
    evidence = "; ".join(map(evidence_text, state["evidence"]))
    texts = {"state": f"{state['name']} ({evidence})"}
    if state["first_steps"] is not None:
        steps = [f"{name} {'the last' if step is None else step}" for name, step in state["first_steps"].items()]
        texts["first steps"] = "; ".join(steps)
    return texts


def results_table(records: Sequence[Record]) -> Table:
    """Claim, measured value, threshold and verdict; conditions are shown where they decide a verdict.

    A column for the model is added where the records name one.
    """
    with_model = any("model" in record for record in records)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in (*(["model"] if with_model else []), "claim", "measured", "threshold", "verdict"):
        # Ids are whole, so that they can be copied; the longer names of conditions are wrapped.
        least = max((len(record["id"]) for record in records), default=0) if column == "claim" else None
        table.add_column(column, overflow="fold", min_width=least, no_wrap=column in ("threshold", "verdict"))

    def add(model: str, name: str, measured: str, threshold: str | None, verdict: str, why: str = "") -> None:
        cells = (name, measured, threshold or "")
        table.add_row(*([model] if with_model else []), *map(Text, cells), Text(verdict + why, STYLES[verdict]))

    for record in records:
        measured = record["reason"] if record["verdict"] == Verdict.SKIPPED else explained_text(record)
        add(record.get("model", ""), record["id"], measured, record["threshold"], record["verdict"], _why(record))
        for condition in record["conditions"]:
            if condition["verdict"] != Verdict.HOLDS:
                name = f"  and {condition['quantity']}"
                add("", name, explained_text(condition), condition["threshold"], condition["verdict"])
    return table


def pass_counts_table(records: Iterable[Record]) -> Table:
    """On how many models each claim holds, those that hold on fewest first, with exact intervals.

    Claims that hold on every model are one line at the end.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("claim", "holds on", "share of models"):
        table.add_column(column, overflow="fold")
    counts = pass_counts((record["id"], record["verdict"]) for record in records)
    everywhere = [count for count in counts if count.share.value == 1]
    for count in sorted(set(counts) - set(everywhere), key=lambda count: (count.share.value, count.claim)):
        table.add_row(count.claim, f"{count.share.count} of {count.share.n}", _interval_text(count.interval))
    if everywhere:
        fewest = min(everywhere, key=lambda count: count.share.n or 0)
        table.add_row(
            f"all others ({len(everywhere)})", f"every one of {fewest.share.n}", _interval_text(fewest.interval)
        )
    return table


def _interval_text(interval: tuple[float, float]) -> str:
    return "[{:.3f}, {:.3f}]".format(*interval)


def _expected_text(record: Record) -> str:
    expected = record.get("expected")
    if expected is None or expected["expect"] != "fails" or record["verdict"] == Verdict.SKIPPED:
        return ""
    return CONTRADICTS if record["verdict"] == Verdict.HOLDS else EXPECTED


def _why(record: Record) -> str:
    """What a verdict alone would leave unclear: that a failure is expected, or that a condition decides."""
    return _expected_text(record) or deciding_text(record)


def deciding_text(record: Record) -> str:
    """That a condition decides the verdict, where it does."""
    deciding = [condition["verdict"] for condition in record["conditions"]]
    return " (condition)" if record["verdict"] in deciding and record["verdict"] != record["itself"] else ""


def summary_line(records: Iterable[Record]) -> str:
    """Counts of verdicts, those apart that a file of expectations foresees or that contradict it."""
    counts = Counter(record["verdict"] + _expected_text(record) for record in records)
    order = [verdict + text for verdict in STYLES for text in ("", EXPECTED, CONTRADICTS)]
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])


class _Output(Console):
    """A console that leaves a closed pipe to the caller, who knows the exit code."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def terminal() -> Console:
    """Standard output, wide enough for the table where it is not a terminal."""
    return _Output(width=None if sys.stdout and sys.stdout.isatty() else WIDTH, highlight=False)


def print_results(console: Console, subject: Record, records: Sequence[Record]) -> None:
    """Print what was judged, the table, and the counts."""
    states = [f"{name}: {text}" for name, text in state_texts(subject["state"]).items()]
    for line in (subject_line(subject), *states):
        console.print(Text(line), soft_wrap=True)
    console.print(results_table(records))
    console.print(summary_line(records))
    if any(record["verdict"] in (Verdict.FAILS, Verdict.UNDECIDED) for record in records):
        console.print("aa claims ID says all that is known of a claim; --html FILE shows the results with plots")
    elif any(record["verdict"] == Verdict.HOLDS for record in records):
        console.print("claims are on means over letters and layouts; aa search looks for the worst of them")
