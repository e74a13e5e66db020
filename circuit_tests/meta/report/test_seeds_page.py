"""The page of studies of seeds."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from aa_core.circuits.state import State
from aa_core.claims.registry import CLAIMS
from aa_core.cli.main import main
from aa_core.statistics import Verdict
from aa_core.sweeps.grid import Axis
from aa_core.sweeps.record import JudgedClaim
from aa_core.sweeps.results import save_results
from circuit_tests.meta.command_line import refused
from circuit_tests.meta.sweeps.sweep_results import logistic, synthetic_sweep


def judged_study(path: Path) -> None:
    """Three seeds; on one the first claim fails and a letter is missing, the second claim holds on all, the last is
    skipped."""
    results = synthetic_sweep(logistic(0.25), values=(0.7,), seeds=3)
    first, second, last = CLAIMS[0].id, CLAIMS[1].id, CLAIMS[-1].id
    records = [
        dataclasses.replace(
            record,
            claims={
                first: JudgedClaim(Verdict.FAILS if record.config["seed"] == 1 else Verdict.HOLDS, 0.5),
                second: JudgedClaim(Verdict.HOLDS, 0.5),
                last: JudgedClaim(Verdict.SKIPPED, None),
            },
        )
        for record in results.records
    ]
    for place, (state, step) in enumerate([(State.REFINED, 100), (State.COMPOSES, None), (State.REFINED, 200)]):
        phases = {**records[place].phases, "pool/1-var/restricted": step}
        records[place] = dataclasses.replace(records[place], state=state, phases=phases)
    axes = (Axis("seed", (0, 1, 2)),)
    manifest = dataclasses.replace(results.manifest, axes=axes)
    save_results(path, dataclasses.replace(results, records=tuple(records), manifest=manifest))


def test_seeds_page_counts_what_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged_study(tmp_path / "seeds" / "paper.json")
    page = tmp_path / "seeds.md"
    assert main(["seeds", str(tmp_path / "seeds"), "--markdown", str(page)]) == 0
    text = page.read_text()
    assert f"| {CLAIMS[0].id} | 2 of 3 | [0.03, 1.00] | 1 |" in text, "Clopper-Pearson of 2 in 3 at 1 - .01 / 2 claims"
    assert f"| {CLAIMS[1].id} | 3 of 3 | [0.14, 1.00] | – |" in text, "Clopper-Pearson of 3 in 3 at 1 - .01 / 2 claims"
    assert f"| {CLAIMS[-1].id} |" not in text, "a claim that was never judged has no rate"
    assert f"1 of 2 hold; fails: {CLAIMS[0].id} |" in text
    assert "| [paper](#paper) | 0.001 | 0.02 | 0 | 40000 | 3 | 3 | 2 | 2 of 3 | 2 of 3 | 200 |" in text
    assert "](seeds/paper.svg)" in text
    assert (tmp_path / "seeds" / "paper.svg").exists()
    assert "no .json results" in refused(capsys, "seeds", tmp_path / "nothing")
    save_results(tmp_path / "seeds" / "f.json", synthetic_sweep(logistic(0.25)))
    assert "expected seeds alone" in refused(capsys, "seeds", tmp_path / "seeds")
    (tmp_path / "seeds" / "f.json").rename(tmp_path / "seeds" / "a|b.json")
    assert "rename it" in refused(capsys, "seeds", tmp_path / "seeds")
