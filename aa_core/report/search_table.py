"""What a search found, in the terminal, from its record."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aa_core.generalisation.diagnosis import FAILING
from aa_core.generalisation.records import FailureRecord, LayoutRecord, LettersRecord, SearchRecord, SequenceRecord
from aa_core.generalisation.smallest import ORDER

SIDES = ("left", "right")


def print_search(console: Console, record: SearchRecord, checkpoint: str) -> None:
    """Print the accuracies by letter and by pair, what is to blame, the worst layouts, and what to ask again."""
    console.print(
        f"right: the share of {record.n_pairs} pairs of values, each in a layout of its own as training draws them "
        f"(1 to {record.max_assignments} assignments, PADs anywhere); aa verify's accuracy is on full prefixes "
        f"({record.max_assignments} assignments, values all different), and differs",
        soft_wrap=True,
    )
    tables = (
        ("right, by letter and side (2-var: median over the other letter)", _letters_table(record.letters)),
        ("right, by pair of letters (rows: on the left)", _pairs_table(record.letters)),
    )
    for title, table in tables:
        if table is not None:
            console.print(title)
            console.print(table)
    _print_causes(console, record)
    console.print(
        f"worst layouts: right, of {record.n_pairs} pairs of values of L and R; {record.budget} tries at random, by "
        "target and step by step, each",
        soft_wrap=True,
    )
    console.print(_worst_table(record))
    _print_wrong(console, record)
    for sequence in record.sequences[:1]:
        command = ["aa", "ask", sequence.text, *(["--checkpoint", checkpoint] if checkpoint else [])]
        console.print(Text(f"ask again, such as: {shlex.join(command)}"), soft_wrap=True)


def _print_causes(console: Console, record: SearchRecord) -> None:
    if not record.causes:
        console.print(f"to blame: nothing; with any letters at least {FAILING:.0%} of the sums are right")
        return
    for number, cause in enumerate(record.causes):
        line = f"{'to blame:' if number == 0 else '     and:'} {cause.text}, {cause.accuracy:.1%} right"
        failure = _failure_text(cause.failure)
        console.print(Text(f"{line}; {failure}", "bold red" if number == 0 else ""), soft_wrap=True)
    if record.n_causes > len(record.causes):
        console.print(f"     and: {record.n_causes - len(record.causes)} more that explain less")


def _print_wrong(console: Console, record: SearchRecord) -> None:
    """A wrong sequence of each kind and of each worst layout."""
    console.print("wrong sequences of each kind, be it to blame or not")
    for kind in record.kinds:
        console.print(Text(f"  {kind.kind}: {_failure_text(kind.failure)}"), soft_wrap=True)
        if kind.example is not None:
            line = f"    in its worst layout, with the smallest values: {_sequence_text(kind.example)}"
            console.print(Text(line), soft_wrap=True)
    if any(record.failure is not None and record.failure.smallest for record in (*record.causes, *record.kinds)):
        console.print(f"smallest: {ORDER}", soft_wrap=True)
    if any(record.failure is not None and not record.failure.smallest for record in (*record.causes, *record.kinds)):
        console.print("a small one: found by a search and shortened; all of the simplest are right", soft_wrap=True)


def _failure_text(failure: FailureRecord | None) -> str:
    if failure is None:
        return "no wrong sequence was found"
    return f"{'the smallest' if failure.smallest else 'a small'} wrong one: {_sequence_text(failure.sequence)}"


def _sequence_text(sequence: SequenceRecord) -> str:
    return f"{sequence.text}   ({sequence.answers})"


def _letters_table(letters: Iterable[LettersRecord]) -> Table | None:
    """Share of right answers by letter and side: in 1L and 1R, and in 2-var the median over the other letter."""
    records = [record for record in letters if record.left or record.right]
    if not records:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("letter", "left, 1L", "left, 2-var", "right, 1R", "right, 2-var"):
        table.add_column(column, justify="right")
    for letter in sorted({letter for record in records for letter in (record.left, record.right) if letter}):
        cells = []
        for side, other in (SIDES, SIDES[::-1]):
            here = [record for record in records if getattr(record, side) == letter]
            one = [record.accuracy for record in here if getattr(record, other) is None]
            two = [record.accuracy for record in here if getattr(record, other) is not None]
            cells += [_share(one), _share(two)]
        table.add_row(letter, *cells)
    return table


def _pairs_table(letters: Iterable[LettersRecord]) -> Table | None:
    """Share of right answers by pair of letters."""
    accuracy = {(record.left, record.right): record.accuracy for record in letters if record.left and record.right}
    if not accuracy:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    names = [sorted({str(pair[side]) for pair in accuracy}) for side in (0, 1)]
    for right in names[1]:
        table.add_column(right, justify="right")
    for left in names[0]:
        values = ([accuracy[left, right]] if (left, right) in accuracy else [] for right in names[1])
        table.add_row(left, *map(_share, values))
    return table


def _share(values: list[float]) -> Text:
    if not values:
        return Text("")
    value = float(np.median(values))
    return Text(f"{value:.3f}", "bold red" if value < FAILING else "")


def _worst_table(record: SearchRecord) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("kind", "at random", "by target", "step by step", "layout"):
        table.add_column(column, justify="left" if column in ("kind", "layout") else "right", overflow="fold")
    for kind in record.kinds:
        table.add_row(kind.kind, *map(_accuracy, (kind.random, kind.target, kind.worst)), Text(kind.worst.text))
    return table


def _accuracy(found: LayoutRecord) -> str:
    return f"{found.accuracy:.4f}"
