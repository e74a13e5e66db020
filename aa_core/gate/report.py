"""A result of the gate for people, programs and test dashboards."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aa_core.gate.comparison import Change, Effect, centre
from aa_core.gate.quantities import Kind, Quantity
from aa_core.gate.result import GateResult, effect_record

STYLES = {Change.REGRESSION: "bold red", Change.IMPROVEMENT: "green", Change.SUSPECT: "yellow", Change.SAME: "dim"}
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def value_text(quantity: Quantity, values: Sequence[float]) -> str:
    """The centre of some values with their range: `16 of 16`, `0.9950 [0.9860, 1.0000]`, `2,300 [2,100, never]`."""
    if quantity.kind is Kind.SHARE:
        return f"{sum(values):.0f} of {len(values)}"
    middle, low, high = (_number(quantity, value) for value in (centre(quantity, values), min(values), max(values)))
    return f"{middle} [{low}, {high}]"


def shift_text(effect: Effect) -> str:
    """By how much the centre moved."""
    size, kind = effect.shift, effect.quantity.kind
    if not math.isfinite(size):
        return "-"
    return f"{size:+,.0f}" if kind is Kind.STEPS else f"{size:+.4f}" if kind is Kind.ACCURACY else f"{size:+.3g}"


def summary_line(result: GateResult) -> str:
    """The verdict and what it rests on, in one line."""
    parts = []
    if result.outcomes:
        n_moved = len(result.moved_invariants)
        parts.append(f"{len(result.outcomes) - n_moved} of {len(result.outcomes)} invariants hold")
    if result.failures:
        parts.append(f"{len(result.failures)} seeds gave no run")
    if result.lost:
        parts.append(f"{len(result.lost)} claims lost")
    if result.effects:
        counts = ", ".join(f"{len(result.changed(change))} {change}" for change in Change)
        parts.append(f"{len(result.effects)} quantities: {counts}")
    if result.throughput is not None:
        parts.append("training as fast as before" if result.throughput.ok else "training is slower")
    if result.accepted:
        return "; ".join([f"new baseline: {result.accepted}", *parts])
    return f"{'no regression' if result.ok else 'REGRESSION'}: {'; '.join(parts)}"


def print_result(console: Console, result: GateResult) -> None:
    """Print what moved, by how much, and the verdict."""
    if result.moved_invariants:
        console.print(
            _table(
                ("invariant", "setting", "what moved"),
                ((Text(o.name, "bold red"), o.setting, o.figures) for o in result.moved_invariants),
            )
        )
    changed = _moved(result)
    if changed:
        rows = ((Text(effect.change, STYLES[effect.change]), *_cells(effect)) for effect in changed)
        console.print(_table(("", "quantity", "baseline", "now", "change", "p (corrected)"), rows))
    for line in (
        *result.failures,
        *_lost(result),
        *result.notes,
        *([str(result.throughput)] if result.throughput else []),
    ):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(summary_line(result), "green" if result.ok else "bold red"), soft_wrap=True)


def json_text(result: GateResult) -> str:
    """Everything, as JSON."""
    throughput = result.throughput
    report = {
        "ok": result.ok,
        "summary": summary_line(result),
        "recipe": result.recipe,
        "code": result.code,
        "invariants": [vars(outcome) for outcome in result.outcomes],
        "failures": list(result.failures),
        "lost": list(result.lost),
        "effects": [effect_record(effect) for effect in result.effects],
        "throughput": None if throughput is None else {**vars(throughput), "ok": throughput.ok},
        "notes": list(result.notes),
        "accepted": result.accepted or None,
    }
    return json.dumps(report, indent=2, allow_nan=False) + "\n"


def markdown_text(result: GateResult) -> str:
    """What moved, as a page."""
    lines = ["# Regression gate", "", f"**{_escaped(summary_line(result))}**", ""]
    if result.moved_invariants:
        rows = ((outcome.name, outcome.setting, outcome.figures) for outcome in result.moved_invariants)
        lines += _markdown_table(("invariant", "setting", "what moved"), rows)
    if _moved(result):
        rows = ((effect.change.value, *_cells(effect)) for effect in _moved(result))
        lines += _markdown_table(("", "quantity", "baseline", "now", "change", "p (corrected)"), rows)
    lines += [f"- {_escaped(line)}" for line in (*result.failures, *_lost(result), *result.notes)]
    lines += [f"- {_escaped(str(result.throughput))}"] if result.throughput else []
    return "\n".join(lines) + "\n"


def junit_text(result: GateResult) -> str:
    """A test case an invariant, seed without a run, quantity and the throughput, in the form that pytest writes."""
    suite = ElementTree.Element("testsuite", name="aa gate", errors="0", skipped="0", time="0")
    for outcome in result.outcomes:
        name = f"{outcome.name}[{outcome.setting}]"
        _add_case(suite, "gate.invariants", name, None if outcome.ok else outcome.figures)
    for line in result.failures:
        _add_case(suite, "gate.runs", line.split(":")[0], line)
    for line in result.lost:
        _add_case(suite, "gate.lost", line.split(":")[0], line)
    for effect in result.effects:
        text = " | ".join(_cells(effect)[1:])
        failure = text if effect.change is Change.REGRESSION else None
        _add_case(suite, "gate.effects", effect.quantity.name, failure, f"{effect.change}: {text}")
    if result.throughput is not None:
        text = str(result.throughput)
        _add_case(suite, "gate.throughput", "step-over-products", None if result.throughput.ok else text, text)
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    root = ElementTree.Element("testsuites", name="aa gate")
    root.append(suite)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _lost(result: GateResult) -> list[str]:
    return [f"lost: {line}" for line in result.lost]


def _moved(result: GateResult) -> list[Effect]:
    """Effects that are not the same, regressions first."""
    return [effect for change in Change if change is not Change.SAME for effect in result.changed(change)]


def _cells(effect: Effect) -> tuple[str, str, str, str, str]:
    quantity = effect.quantity
    before, after = value_text(quantity, effect.before), value_text(quantity, effect.after)
    return quantity.name, before, after, shift_text(effect), f"{effect.test.p:.2g} ({effect.adjusted_p:.2g})"


def _number(quantity: Quantity, value: float) -> str:
    if math.isinf(value):
        return "never" if quantity.kind is Kind.STEPS else "undefined"
    return (
        f"{value:,.0f}"
        if quantity.kind is Kind.STEPS
        else f"{value:.4f}"
        if quantity.kind is Kind.ACCURACY
        else f"{value:.4g}"
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def _markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [columns, ["---"] * len(columns), *([_escaped(cell) for cell in row] for row in rows)]
    return [*(f"| {' | '.join(row)} |" for row in cells), ""]


def _escaped(text: str) -> str:
    return " ".join(re.sub(r"([\\|<>*_`\[\]])", r"\\\1", text).split())


def _add_case(suite: ElementTree.Element, classname: str, name: str, failure: str | None, output: str = "") -> None:
    case: Any = ElementTree.SubElement(suite, "testcase", classname=classname, name=_xml(name), time="0")
    if failure is not None:
        ElementTree.SubElement(case, "failure", message=_xml(failure)).text = _xml(failure)
    if output:
        ElementTree.SubElement(case, "system-out").text = _xml(output)


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
