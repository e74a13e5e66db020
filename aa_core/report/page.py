"""Results as one page that needs nothing else: no script, no other file, no network."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Form
from aa_core.report.plots import Plot, plots
from aa_core.report.table import STYLES, Record, explained_text, state_texts, summary_line
from aa_core.statistics import FAMILY_ALPHA, Verdict

SYMBOLS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNDECIDED: "?", Verdict.SKIPPED: "-"}
COLUMNS = ("claim", "measured", "threshold", "verdict")


def html_report(subject: Record, claims: Sequence[Record], judged: Subject | TrajectorySubject) -> str:
    """The page; equal input gives equal text.

    Args:
        subject: from `aa_core.report.record.subject_record`.
        claims: a `claim_record` for each claim.
        judged: the model or models that the figures show.

    Raises:
        InputError: the task is too small for the sequences that the figures need.
    """
    return page(subject, claims, plots(judged))


def page(subject: Record, claims: Sequence[Record], figures: Sequence[Plot]) -> str:
    """The page around figures that are drawn already."""
    style = files("aa_core.report").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(summary_line(claims))}: {escape(subject["path"])}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>Assign-and-add circuit report</h1>
<p class="path">{escape(subject["path"])}</p>
{_summary(claims)}
{_subject(subject)}
</header>
<main>
<h2>Claims</h2>
<p>{_how_to_read()}</p>
{_claims(claims)}
<h2>Figures</h2>
{_figures(figures, subject)}
</main>
</body>
</html>
"""


def _prose(text: str) -> str:
    """Text with `code` set as such."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _threshold(text: str) -> str:
    return f'<span class="number">{escape(text.replace(">=", "≥").replace("<=", "≤"))}</span>'


def _verdict(verdict: str, text: str = "") -> str:
    return f'<span class="verdict {escape(verdict)}">{SYMBOLS[Verdict(verdict)]} {escape(text or verdict)}</span>'


def _family(claim: Record) -> str:
    return claim["id"].split("/")[0]


def _summary(claims: Sequence[Record]) -> str:
    """Counts, and links to the claims that do not hold, a line a family."""
    counts = {verdict: sum(claim["verdict"] == verdict for claim in claims) for verdict in STYLES}
    badges = " ".join(_verdict(verdict, f"{count} {verdict}") for verdict, count in counts.items() if count)
    lines = []
    for verdict in (Verdict.FAILS, Verdict.UNDECIDED):
        for family, members in groupby([claim for claim in claims if claim["verdict"] == verdict], _family):
            links = ", ".join(_link(claim) for claim in members)
            lines.append(f"<li>{_verdict(verdict)} {escape(family)}: {links}</li>\n")
    return f'<p class="counts">{badges}</p>\n<ul class="missed">\n{"".join(lines)}</ul>'


def _link(claim: Record) -> str:
    name = claim["id"].removeprefix(f"{_family(claim)}/")
    return f'<a href="#{escape(claim["id"])}">{escape(name)}</a>' + (" (expected)" if claim["expected"] else "")


def _subject(subject: Record) -> str:
    """What was judged."""
    split, task, steps = subject["split"], subject["task"], subject["steps"]
    step = "not known" if subject["step"] is None else str(subject["step"])
    rows = {
        "Format": subject["format"],
        "Step": step if steps is None else f"{step}, the last of {len(steps)} checkpoints",
        **{name.capitalize(): text for name, text in state_texts(subject["state"]).items()},
        "Weights": f"SHA-256 {subject['hash']}",
        "Task": f"modulus {task['modulus']}, {task['n_variables']} variables, at most {task['max_assignments']} "
        f"assignments, {task['n_ctx']} tokens",
        "Split": f"{split['train_fraction']:g} of the pairs in training, drawn with seed {split['seed']}; "
        f"2-var frequency {split['two_variable_frequency']:g}; never left: {split['never_left'] or 'none'}; "
        f"never right: {split['never_right'] or 'none'}",
        "Versions": ", ".join(f"{name} {version}" for name, version in subject["versions"].items()),
    }
    items = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>\n" for name, text in rows.items())
    return f'<dl class="subject">\n{items}{_training(subject["config"])}</dl>'


def _training(config: dict[str, Any] | None) -> str:
    if config is None:
        return "<div><dt>Training</dt><dd>not in the file</dd></div>\n"
    text = escape(json.dumps(config, indent=2))
    return (
        f"<div><dt>Training</dt><dd><details><summary>config, seed {config['seed']}</summary>"
        f"<pre>{text}</pre></details></dd></div>\n"
    )


def _how_to_read() -> str:
    return (
        f"<b>{Form.LITERAL.capitalize()}</b> claims are as the paper states them; <b>{Form.CONTROLLED}</b> ones are "
        "in a form that was measured to tell broken models apart. A claim holds if its measured value and all its "
        "conditions meet their thresholds with their whole intervals, fails if one misses with its whole interval, "
        f"and is undecided otherwise. All intervals together cover their true values with {1 - FAMILY_ALPHA:.0%} "
        "probability."
    )


def _claims(claims: Sequence[Record]) -> str:
    """The table, with one body a family."""
    head = "".join(f'<th scope="col">{column}</th>' for column in COLUMNS)
    bodies = []
    for family, members in groupby(claims, _family):
        rows = "\n".join(_row(claim) for claim in members)
        name = escape(family)
        bodies.append(f'<tbody>\n<tr class="family"><th colspan="{len(COLUMNS)}">{name}</th></tr>\n{rows}\n</tbody>')
    return f"<table>\n<thead><tr>{head}</tr></thead>\n" + "\n".join(bodies) + "\n</table>"


def _row(claim: Record) -> str:
    if claim["verdict"] == Verdict.SKIPPED:
        measured, threshold = f"skipped: {escape(claim['reason'])}", ""
    else:
        measured, threshold = _measured(claim) + _expected(claim["expected"]), _threshold(claim["threshold"])
    return (
        f'<tr id="{escape(claim["id"])}">'
        f"<td>{_prose(claim['statement'])}"
        f'<div class="id"><code>{escape(claim["id"])}</code> {escape(claim["form"])}</div>{_conditions(claim)}</td>'
        f'<td data-label="measured">{measured}</td>'
        f'<td data-label="threshold">{threshold}</td>'
        f"<td>{_verdict(claim['verdict'])}</td></tr>"
    )


def _measured(record: Record) -> str:
    """Value, what it is, and what is known of it where it does not hold."""
    value, *notes = explained_text(record).split("\n")
    lines = "".join(f'<div class="note">{_prose(line)}</div>' for line in (record["quantity"], *notes))
    return f'<span class="number">{escape(value)}</span>{lines}'


def _expected(entry: Record | None) -> str:
    return "" if entry is None else f'<div class="note">expected to fail: {escape(entry["reason"])}</div>'


def _conditions(claim: Record) -> str:
    """The conditions, folded where they hold."""
    conditions = claim["conditions"]
    if not conditions:
        return ""
    missed = sum(condition["verdict"] != Verdict.HOLDS for condition in conditions)
    number = "1 condition" if len(conditions) == 1 else f"{len(conditions)} conditions"
    summary = f"{number}, {f'{missed} not met' if missed else 'met'}"
    items = "".join(f"<li>{_condition(condition)}</li>" for condition in conditions)
    return f"<details{' open' if missed else ''}><summary>{summary}</summary><ul>{items}</ul></details>"


def _condition(condition: Record) -> str:
    value, *notes = explained_text(condition).split("\n")
    words = "; ".join((condition["quantity"], *notes))
    measured = f'<span class="number">{escape(value)}</span>, {_threshold(condition["threshold"])}'
    return f"{_prose(words)}: {measured} {_verdict(condition['verdict'])}"


def _figures(figures: Sequence[Plot], subject: Record) -> str:
    last = "" if subject["steps"] is None else "<p>All figures but the last show the last checkpoint.</p>\n"
    return last + "\n".join(
        f"<figure>\n<figcaption><h3>{_prose(figure.title)}</h3><p>{_prose(figure.caption)}</p></figcaption>\n"
        f'<div class="panels">\n{"".join(figure.panels)}</div>\n</figure>'
        for figure in figures
    )
