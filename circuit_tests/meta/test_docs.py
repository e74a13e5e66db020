"""Documents and packaging say what the code does."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy import stats

from aa_core.checkpoints import load_trajectory
from aa_core.circuits.state import State
from aa_core.claims.registry import CLAIMS
from aa_core.errors import InputError
from aa_core.fixtures import fixture_folder
from aa_core.report.claims_page import claims_page
from aa_core.report.results_page import load_reports, results_page
from aa_core.report.seeds_page import AT_THE_END, all_hold, load_study, seeds_page
from aa_core.statistics import Verdict
from aa_core.sweeps.record import JudgedClaim, RunRecord
from aa_core.training.recipes import recipe_name

ROOT = Path(__file__).parents[2]
RESULTS = Path("docs/results")


def commands(readme: str) -> list[str]:
    """Lines of the README's blocks of code, without their comments."""
    blocks = re.findall(r"^```\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    return [line.split("  #")[0].rstrip() for block in blocks for line in block.splitlines()]


def test_claims_page_is_current() -> None:
    assert (ROOT / "docs/claims.md").read_text() == claims_page(), "run: aa claims --markdown docs/claims.md"


def test_results_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/results.md").read_text()
    assert page == results_page(RESULTS), "run: aa results docs/results --markdown docs/results.md"


def test_seeds_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/seeds.md").read_text()
    assert page == seeds_page(Path("docs/seeds"), "seeds"), "run: aa seeds docs/seeds --markdown docs/seeds.md"


def test_the_last_letter_is_as_the_studies_have_it() -> None:
    """Figures of that section of `docs/stuck.md`."""
    studies = {path.stem: load_study(path).records for path in (ROOT / "docs/seeds").glob("*.json")}
    page = " ".join((ROOT / "docs/stuck.md").read_text().split())

    def seeds(study: str, kept: Callable[[RunRecord], bool]) -> dict[int, RunRecord]:
        return {record.config["seed"]: record for record in studies[study] if kept(record)}

    def claim(record: RunRecord, name: str) -> JudgedClaim:
        assert record.claims is not None
        return record.claims[name]

    held = seeds("weight-decay-0.05", lambda record: record.state is not State.REFINED)
    others = seeds("weight-decay-0.05", lambda record: record.state is State.REFINED)
    gaps = [[-(claim(run, "refinement/score-gap").value or 0) for run in runs.values()] for runs in (held, others)]
    steps = {seed: run.phases["pool/1-var/restricted"] or 0 for seed, run in seeds("fast", lambda _: True).items()}
    inexact = {
        study: len(seeds(study, lambda run: claim(run, "generalisation/0-var-held-out").verdict is not Verdict.HOLDS))
        for study in studies
    }
    assert list(held) == [10, 11]
    assert f"is {gaps[0][0]:.1f} and {gaps[0][1]:.1f} nats behind" in page
    assert f"is refined, {max(gaps[1]):.2f} at most" in page
    assert (
        f"seed 10 solves sums of one restricted letter at step {steps[10]:,} and that of seed 11 at {steps[11]:,}"
        in page
    )
    assert f"from step {min(steps.values()):,} to {max(steps.values()):,} in `fast`" in page
    assert len(seeds("fast", lambda record: record.state is State.REFINED)) == 16
    p = stats.hypergeom.cdf(0, 32, len(held), 16)  # Fisher's test, one-sided: none of the held ones among `fast`
    assert f"has a p-value of {p:.2f} (Fisher".replace("0.", ".") in page
    left = seeds("paper", lambda run: run.config["seed"] == 0)[0]
    assert f"on seed 0 by step {left.phases['pool/1-var/restricted']:,} and ends with" in page
    worst = claim(left, "refinement/restricted-letters-1-var").value or 0
    assert f"with {worst:.2f} of the worst letter".replace("0.", ".") in page
    more = {study: inexact[study] for study in ("fast", "fast-16-31", "weight-decay-0.05")}
    assert f"on {inexact['paper']} of 16 seeds; those with more, on {sum(more.values())} of 48" in page


def test_seeds_that_the_recipe_was_not_chosen_on_are_counted() -> None:
    studies = {path.stem: load_study(path).records for path in (ROOT / "docs/seeds").glob("*.json")}
    states = {study: Counter(record.state for record in records) for study, records in studies.items()}
    chosen, others = states["fast"], states["fast-16-31"]
    assert chosen == {State.REFINED: 16}
    stuck = " ".join((ROOT / "docs/stuck.md").read_text().split())
    assert f"(`fast-16-31`) {others[State.REFINED]} are refined" in stuck
    assert (others[State.COMPOSES], others[State.STUCK]) == (3, 1)
    assert "of the other four, three compose" in stuck
    assert [run.config["seed"] for run in studies["fast-16-31"] if run.state is State.STUCK] == [17]
    assert "of 32 seeds of the recipe `fast` (2e-3) one is stuck, seed 17" in stuck
    assert states["paper"][State.STUCK] == 2
    readme = " ".join((ROOT / "README.md").read_text().split())
    hold = {study: sum(all_hold(record, AT_THE_END) for record in studies[study]) for study in ("fast", "fast-16-31")}
    assert hold["fast"] == 16
    assert (
        f"the same is true of {hold['fast-16-31']} of 16; {16 - others[State.STUCK]} compose, and one is stuck"
        in readme
    )


def test_reports_cover_the_registry() -> None:
    for name, report in load_reports(ROOT / RESULTS).items():
        assert set(report["claims"]) == {claim.id for claim in CLAIMS}, f"{name}: run aa verify --json again"


def test_controls_are_those_of_the_fixture_and_of_the_registry() -> None:
    matrix = json.loads((ROOT / "docs/controls.json").read_text())
    final = load_trajectory(fixture_folder()).final
    assert matrix["weights_sha256"] == final.sha256, "run: aa controls --json docs/controls.json"
    assert matrix["faults"] == []
    assert {row["claim"] for row in matrix["rows"]} == {claim.id for claim in CLAIMS}
    failed = {(row["claim"], row["control"]) for row in matrix["rows"] if row["verdict"] == "fails"}
    assert {(claim.id, control) for claim in CLAIMS for control in claim.broken_by} <= failed
    page = (ROOT / "docs/controls.md").read_text()
    assert f"`{final.sha256[:12]}`: {len(CLAIMS)} claims" in page


def test_a_file_that_is_no_report_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.json report"):
        load_reports(tmp_path)
    (tmp_path / "other.json").write_text('{"claims": 3}')
    with pytest.raises(InputError, match=r"other\.json"):
        load_reports(tmp_path)


def test_every_family_has_a_file_of_tests() -> None:
    tested = set()
    for path in (ROOT / "circuit_tests").glob("test_*.py"):
        tested |= set(re.findall(r'claim_test\("(.+?)"\)', path.read_text()))
    assert tested == {claim.family for claim in CLAIMS}


def test_ci_calls_the_test_command_of_the_readme() -> None:
    [command] = [
        line for line in commands((ROOT / "README.md").read_text()) if line.endswith("&& pytest circuit_tests")
    ]
    assert command in (ROOT / ".ci/run").read_text().splitlines()


def test_commands_of_the_readme_exist() -> None:
    from aa_core.cli.main import parser

    named = {line.split()[1] for line in commands((ROOT / "README.md").read_text()) if line.startswith("aa ")}
    help_text = parser().format_help()
    assert named
    assert not {name for name in named if not re.search(rf"^    {name}\b", help_text, re.MULTILINE)}


def test_python_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    [code] = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    exec(code, {})
    printed = capsys.readouterr().out
    assert "qk-identity/z holds" in printed
    assert "tensor(2)" in printed, "the model does not answer 42 + 19 = 2 (mod 59)"


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.match(r"[\w.-]+", requirement)[0] for requirement in wanted} - {project["name"]}  # pyright: ignore
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), "a line is not an exact version"
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    assert {name.lower().replace("_", "-") for name in names} <= pinned


def test_fixture_is_whole() -> None:
    folder = fixture_folder()
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    manifest = json.loads(files.pop("manifest.json").read_text())
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()} == {
        name: record["sha256"] for name, record in manifest["files"].items()
    }
    assert sum(path.stat().st_size for path in files.values()) <= 20 * 2**20


def test_fixture_is_a_run_of_the_paper_recipe() -> None:
    trajectory = load_trajectory(fixture_folder())
    config = trajectory.final.config
    assert config is not None
    assert recipe_name(config) == "paper"
    assert trajectory.final.step == config.steps
    assert trajectory.checkpoints[0].step == 0
