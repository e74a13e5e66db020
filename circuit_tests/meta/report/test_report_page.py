"""The page: whole, harmless, legible in both themes, and the same for the same results."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from aa_core.checkpoints import load_subject, save_checkpoint
from aa_core.circuits.subject import DataConfig, Subject
from aa_core.cli.main import main
from aa_core.errors import InputError
from aa_core.report.page import html_report, page
from aa_core.report.record import subject_record
from aa_core.report.svg import COLOURS
from aa_core.task.split import Split
from circuit_tests.meta.checkpoint_files import SPLIT, TASK, small_config, small_parameters
from circuit_tests.meta.report.html_reader import Reader, words

SUBJECT = Subject(small_parameters(), Split(TASK, SPLIT), DataConfig(full_prefix=40, pool=40, pairs=12))
HOSTILE = """<script>alert("x")</script>&amp;'<img src=x onerror=y>"""


def finding(verdict: str, **changed: Any) -> dict[str, Any]:
    base = {"quantity": "share of rows", "measured": 0.5, "threshold": ">= 0.9", "n": 12, "count": None}
    return base | {"interval": (0.25, 0.75), "note": "not for b", "verdict": verdict} | changed


def claim(name: str, verdict: str, *conditions: dict[str, Any], **changed: Any) -> dict[str, Any]:
    base = {"id": name, "statement": f"Statement of {name}.", "form": "literal", "conditions": list(conditions)}
    reason = "no such letter" if verdict == "skipped" else ""
    return base | finding(verdict) | {"reason": reason, "expected": None} | changed


CLAIMS = [
    claim("first/good", "holds", finding("holds", quantity="an easy condition"), form="controlled"),
    claim("first/bad", "fails", finding("holds"), finding("fails", quantity="a hard condition", threshold="<= 0.1")),
    claim("second/open", "undecided"),
    claim("second/none", "skipped", **dict.fromkeys(("quantity", "measured", "threshold", "n", "interval", "note"))),
]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("page") / "step_50.safetensors"
    save_checkpoint(path, small_parameters(), small_config(), 50)
    return subject_record(load_subject(path), SUBJECT)


@pytest.fixture(scope="module")
def whole(record: dict[str, Any]) -> str:
    """A page with figures."""
    return html_report(record, CLAIMS, SUBJECT)


@pytest.fixture(scope="module")
def bare(record: dict[str, Any]) -> str:
    """The same without."""
    return page(record, CLAIMS, [])


# The page by itself


def test_page_loads_nothing_and_runs_nothing(whole: str):
    reader = Reader(whole)
    assert whole.startswith("<!doctype html>")
    tags = {tag for tag, _ in reader.elements}
    assert not tags & {"script", "link", "img", "image", "iframe", "object", "embed", "base", "form"}, tags
    assert not [name for _, attributes in reader.elements for name in attributes if name.startswith("on")]
    assert not reader.values("src")
    links = reader.values("href") + reader.values("xlink:href") + re.findall(r"url\(([^)]*)\)", whole)
    assert links, "no link to check"
    assert [link for link in links if not link.startswith("#")] == []
    assert not re.search("@import|http", whole)


def test_ids_are_unique_and_links_lead_to_them(whole: str):
    reader = Reader(whole)
    counts = Counter(reader.values("id"))
    assert [name for name, count in counts.items() if count > 1] == []
    links = reader.values("href") + reader.values("xlink:href") + re.findall(r"url\(([^)]*)\)", whole)
    assert {link[1:] for link in links} <= set(counts)


def test_colours_are_defined_in_both_themes(whole: str):
    style = whole[whole.index("<style>") : whole.index("</style>")]
    light, dark = (set(re.findall(r"--([\w-]+):", part)) for part in style.split("prefers-color-scheme: dark"))
    used = set(re.findall(r"var\(--([\w-]+)\)", whole))
    assert light == dark == used | set(COLOURS)
    assert not [stand_in for stand_in in COLOURS.values() if stand_in in whole]
    drawn = set(re.findall(r"(?:fill|stroke|color): ([^;\"]+)", whole[whole.index("<figure>") :]))
    assert {colour for colour in drawn if not colour.startswith("var(")} <= {"none"}


def test_equal_input_gives_equal_pages_whatever_matplotlib_is_set_to(record: dict[str, Any], whole: str):
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": None, "svg.fonttype": "path", "xtick.major.size": 9}):
        assert html_report(record, CLAIMS, SUBJECT) == whole
        assert mpl.rcParams["font.size"] == 30, "settings of matplotlib leaked"


def test_everything_from_outside_is_escaped(record: dict[str, Any]):
    def hostile(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: hostile(each) for name, each in value.items()}
        return HOSTILE if isinstance(value, str) else value

    kept = {"verdict": "fails", "id": f"{HOSTILE}/x", "conditions": [hostile(finding("")) | {"verdict": "fails"}]}
    claims = [hostile(CLAIMS[1]) | kept, hostile(CLAIMS[3]) | kept | {"verdict": "skipped"}]
    reader = Reader(page(hostile(record), claims, []))
    assert {tag for tag, _ in reader.elements} & {"script", "img"} == set()
    assert f"{HOSTILE}/x" in reader.values("id")
    assert f"#{HOSTILE}/x" in reader.values("href")
    assert reader.text.count(HOSTILE) > 20


# What the page says


def test_header_says_what_was_judged(record: dict[str, Any], bare: str):
    text = words(bare)
    split = "0.6 of the pairs in training, drawn with seed 3; 2-var frequency 0.5; never left: e; never right: b"
    for part in (record["path"], "assign-and-add", "Step 50", record["hash"], split, *record["versions"].values()):
        assert part in text, f"{part!r} is missing"
    assert '"checkpoint_every"' in text, "no training config"
    assert "State untrained (0-var, pairs of training" in text


def test_header_of_foreign_folder(record: dict[str, Any]):
    foreign = record | {"step": None, "steps": [1, 401, None], "config": None}
    text = words(page(foreign, CLAIMS, []))
    assert "Step not known, the last of 3 checkpoints" in text
    assert "Training not in the file" in text


def test_claims_stand_in_order_by_family(bare: str):
    rows = [(attributes.get("id"), attributes.get("class")) for tag, attributes in Reader(bare).elements if tag == "tr"]
    family = (None, "family")
    assert rows == [
        (None, None),
        family,
        ("first/good", None),
        ("first/bad", None),
        family,
        ("second/open", None),
        ("second/none", None),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "first/good",
            "Statement of first/good. first/good controlled 1 condition, met an easy condition: 0.5 [0.25, 0.75] , "
            "≥ 0.9 ✓ holds 0.5 [0.25, 0.75] share of rows ≥ 0.9 ✓ holds",
        ),
        (
            "first/bad",
            "Statement of first/bad. first/bad literal 2 conditions, 1 not met "
            "share of rows: 0.5 [0.25, 0.75] , ≥ 0.9 ✓ holds "
            "a hard condition; not for b: 0.5 [0.25, 0.75] , ≤ 0.1 ✗ fails "
            "0.5 [0.25, 0.75] share of rows not for b ≥ 0.9 ✗ fails",
        ),
        (
            "second/open",
            "Statement of second/open. second/open literal 0.5 [0.25, 0.75] share of rows not for b ≥ 0.9 ? undecided",
        ),
        ("second/none", "Statement of second/none. second/none literal skipped: no such letter - skipped"),
    ],
)
def test_row_of_a_claim(bare: str, name: str, text: str):
    row = bare[bare.index(f'<tr id="{name}">') :]
    row = row[: row.index("</tr>")] + "</tr>"
    assert words(row) == text
    assert ("<details open>" in row) == (name == "first/bad"), "conditions are unfolded where one does not hold"


def test_summary_counts_verdicts_and_links_to_what_does_not_hold(bare: str):
    summary = bare[bare.index('<p class="counts">') : bare.index("<dl")]
    assert words(summary) == (
        "✓ 1 holds ✗ 1 fails ? 1 undecided - 1 skipped ✗ fails first: bad ? undecided second: open"
    )
    assert Reader(summary).values("href") == ["#first/bad", "#second/open"]


def test_code_in_statements_is_set_as_code(record: dict[str, Any]):
    html = page(record, [claim("a/b", "holds", statement="What `=` & `<` do")], [])
    assert "What <code>=</code> &amp; <code>&lt;</code> do" in html


def test_expected_failures_are_named(record: dict[str, Any]):
    entry = {"claim": "first/*", "model": "seed1", "expect": "fails", "reason": "its variables <collapsed>"}
    html = page(record, [claim("first/bad", "fails", expected=entry), claim("first/open", "undecided")], [])
    assert "✗ fails first: bad (expected) ? undecided first: open Format" in words(html)
    assert words(html).count("expected to fail: its variables <collapsed>") == 1


# The command line


def test_verify_writes_a_page(tmp_path: Path):
    path = tmp_path / "untrained.safetensors"
    save_checkpoint(path, small_parameters(), small_config(), 0)
    target = tmp_path / "new" / "r.html"
    assert main(["verify", "--checkpoint", str(path), "--claims", "qk-identity/z", "--html", str(target)]) == 1
    html = target.read_text()
    assert str(path) in words(html)
    assert html.count("<figure>") == 6


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch):
    for name in list(sys.modules):
        if name.startswith("aa_core.report."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install -c constraints\.txt -e '\.\[report\]'") as caught:
        __import__("aa_core.report.page")
    assert "\n" not in str(caught.value)
