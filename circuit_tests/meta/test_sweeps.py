"""Sweeps: the grammar of the grid, records, results files, and what survives interruption and failure."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import pytest

from aa_core.checkpoints import load_checkpoint
from aa_core.circuits.accuracy import held_out_zero_variable, pool_accuracy
from aa_core.circuits.state import diagnose
from aa_core.circuits.subject import Subject
from aa_core.claims.registry import CLAIMS
from aa_core.cli.main import main
from aa_core.errors import InputError
from aa_core.runs import Run, RunStore
from aa_core.statistics import Verdict
from aa_core.sweeps import execution
from aa_core.sweeps.grid import FRACTION, Axis, grid, parse_axis
from aa_core.sweeps.point import Failure, Work
from aa_core.sweeps.record import RECORD, JudgedClaim, RunRecord, phases, plain_config, run_record
from aa_core.sweeps.results import load_results, save_results
from aa_core.training.config import TrainConfig
from aa_core.training.metrics import metrics_for
from aa_core.training.recipes import RECIPES
from circuit_tests.meta.sweep_results import logistic, synthetic_sweep
from circuit_tests.meta.test_cli import refused
from circuit_tests.meta.tiny import TINY


@pytest.fixture(autouse=True)
def tiny_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(RECIPES, "tiny", TINY)
    monkeypatch.setenv("AA_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return RunStore(metrics_for, root=tmp_path_factory.mktemp("finished")).run(TINY)


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("f", FRACTION, (0.06, 0.525, 0.99)),
        ("r", "split.two_variable_frequency", (0.01, 0.5, 0.99)),
        ("f=0.1,0.3", FRACTION, (0.1, 0.3)),
        ("r=0:1:2", "split.two_variable_frequency", (0.0, 1.0)),
        ("seed=0-2,7", "seed", (0, 1, 2, 7)),
        ("split.seed=3", "split.seed", (3,)),
        ("learning_rate=1e-3,2e-3", "learning_rate", (0.001, 0.002)),
        ("steps=100:300:3", "steps", (100, 200, 300)),
        ("precision=float32,bfloat16", "precision", ("float32", "bfloat16")),
        ("split.never_left=,kl", "split.never_left", ("", "kl")),
    ],
)
def test_axis(text: str, field: str, values: tuple[object, ...]) -> None:
    axis = parse_axis(text, 3)
    assert axis == Axis(field, values)  # pyright: ignore[reportArgumentType]
    assert [type(value) for value in axis.values] == [type(value) for value in values]


def test_default_grids_are_the_papers() -> None:
    for text, first, last in (("f", 0.06, 0.99), ("r", 0.01, 0.99)):
        values = parse_axis(text).values
        assert (len(values), values[0], values[-1]) == (20, first, last)


def test_grid_is_every_combination_the_last_axis_fastest() -> None:
    configs = grid(TrainConfig(), [parse_axis("f=0.1,0.3"), parse_axis("seed=0-1")])
    assert [(config.split.train_fraction, config.seed) for config in configs] == [
        (0.1, 0),
        (0.1, 1),
        (0.3, 0),
        (0.3, 1),
    ]
    assert {dataclasses.replace(config, seed=0, split=TrainConfig().split) for config in configs} == {TrainConfig()}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "nothing to sweep"),
        (["x=1"], "no field x"),
        (["split=1"], "fields of its own"),
        (["split.x=1"], "no field split.x"),
        (["seed.x=1"], "no field seed.x"),
        (["checkpoint_every=1"], "cannot be swept"),
        (["seed"], "expected f, r or FIELD=VALUES"),
        (["seed=x"], "expected seeds"),
        (["steps=1.5"], "integer"),
        (["steps=1:2:3"], "integer"),
        (["learning_rate="], "number"),
        (["learning_rate=1,x"], "'x'"),
        (["f=0.1:nan:3"], "finite"),
        (["f=0.1:0.2:0"], "expected 1 to"),
        (["f=0.1,0.1"], "twice"),
        (["f", "split.train_fraction=0.1"], "twice"),
        (["seed=1", "--seeds", "0-1"], "twice"),
        (["f=0,0.5"], "train_fraction is 0.0"),
        (["f=0.00001"], "no training pair"),
        (["seed=0-9999", "f"], "more than"),
        (["f", "--recipe", "none"], "--recipe"),
        (["f=0.1", "--points", "3"], "--points"),
        (["f", "--points", "0"], "expected 1 to"),
        (["f", "--jobs", "0"], "--jobs"),
        (["f", "--threads", "0"], "--threads"),
        (["f", "--jobs", "2", "--scheduler", "tcp://127.0.0.1:9"], "--jobs"),
        (["f", "--output", "a", "--csv", "a"], "--csv"),
        (["f", "--output", "."], "not a regular file"),
        (["f", "--markdown", "page.md"], "--verify"),
        (["f", "--verify", "f.json"], "leave AXIS"),
        (["--verify", "absent.json"], "absent.json"),
        (["--verify", "a.json", "--markdown", "a.json"], "--markdown"),
        (["--verify", "a.json", "--markdown", "."], "not a regular file"),
    ],
)
def test_bad_input(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in refused(capsys, "sweep", *arguments)


def test_record_is_what_the_run_says_and_survives_json(finished: Run) -> None:
    record = run_record(finished, judge=False)
    assert RECORD.validate_json(RECORD.dump_json(record)) == record
    checkpoint = load_checkpoint(finished.final_path)
    subject = Subject(checkpoint.parameters, checkpoint.split)
    for name in ("0-var/seen", "2-var/both-restricted"):
        assert record.accuracy(name) == pool_accuracy(subject, name).value
    exact = held_out_zero_variable(subject)
    assert record.accuracies["exact/0-var/held-out"] == (exact.count, exact.n)
    assert record.accuracy("1-var/seen", "2-var/seen") == pytest.approx(
        (record.accuracy("1-var/seen") + record.accuracy("2-var/seen")) / 2
    )
    assert record.state is diagnose(subject).state
    assert (record.run, record.code, record.threads) == (finished.folder.name, finished.manifest.code, 1)
    assert record.config["split"]["never_left"] == "d"
    assert record.claims is None


def test_judged_record_has_every_claim(finished: Run) -> None:
    record = run_record(finished)
    assert record.claims is not None
    assert list(record.claims) == [claim.id for claim in CLAIMS]
    assert Verdict.FAILS in {claim.verdict for claim in record.claims.values()}, "an untrained model lacks the circuit"
    assert RECORD.validate_json(RECORD.dump_json(record)) == record


def test_phase_is_the_first_step_at_95_percent() -> None:
    accuracies = {100: 0.5, 200: 0.95, 300: 0.9, 400: 1.0}
    rows = [{"step": step, "full-prefix/1L": accuracy} for step, accuracy in accuracies.items()]
    found = phases([{**row, "full-prefix/1R": 0.949} for row in rows])
    assert found["full-prefix/1L"] == 200
    assert found["full-prefix/1R"] is None
    assert found["pool/0-var/seen"] is None, "a metric that was not logged"


def sweep(*arguments: str | Path) -> int:
    return main(["sweep", "--recipe", "tiny", "--jobs", "1", "--no-judge", *map(str, arguments)])


def test_interrupted_sweep_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out.json"
    done: list[int] = []
    real = execution.run_point

    def interrupted(config: TrainConfig, work: Work) -> RunRecord | Failure:
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(config.seed)
        return real(config, work)

    monkeypatch.setattr(execution, "run_point", interrupted)
    assert sweep("--seeds", "0-2", "--output", output) == 130
    assert [record.config["seed"] for record in load_results(output).records] == [0]
    monkeypatch.setattr(execution, "run_point", lambda config, work: (done.append(config.seed), real(config, work))[1])
    assert sweep("--seeds", "0-2", "--output", output) == 0
    assert sorted(done) == [0, 1, 2], "a finished point was done again, or one was left out"
    finished = output.read_bytes()
    assert sweep("--seeds", "0-2", "--output", output) == 0
    assert output.read_bytes() == finished
    assert sweep("--seeds", "0-3", "--output", output) == 0, "more seeds go into the same file"
    assert sorted(done) == [0, 1, 2, 3]


def test_seeds_alone_are_judged_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[bool] = []

    def note(config: TrainConfig, work: Work) -> Failure:
        judged.append(work.judge)
        return Failure(plain_config(config), "noted")

    monkeypatch.setattr(execution, "run_point", note)
    for arguments in (["seed=0"], ["seed=0", "--no-judge"], ["f=0.5", "seed=0"], ["f=0.5", "--judge"]):
        assert main(["sweep", "--recipe", "tiny", "--jobs", "1", *arguments]) == 1
    assert judged == [True, False, False, True]


def test_record_by_other_training_code_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    record = synthetic_sweep(logistic(0.25)).records[0]
    monkeypatch.setattr(execution, "run_point", lambda config, work: record)
    [point] = execution.run_points([TINY], Work(), jobs=1)
    assert isinstance(point, Failure), f"a record of code {record.code!r} was taken"
    assert "other training code" in point.reason


def test_failing_point_is_reported_and_stops_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, table = tmp_path / "out.json", tmp_path / "out.csv"
    assert sweep("learning_rate=1e30,1e-3", "seed=4", "--output", output, "--csv", table) == 1
    results = load_results(output)
    [record], [failed] = results.records, results.failures
    assert record.config["learning_rate"] == 1e-3
    assert failed.config["learning_rate"] == 1e30
    assert "training diverged" in failed.reason
    assert "learning_rate=1e+30, seed=4 failed: training diverged" in capsys.readouterr().err
    assert results.manifest.command == "aa sweep learning_rate=1e30,1e-3 seed=4 --recipe tiny --no-judge"
    [row] = csv.DictReader(io.StringIO(table.read_text()))
    assert (row["learning_rate"], row["seed"], row["state"]) == ("0.001", "4", record.state)
    assert (int(row["right/0-var/seen"]), int(row["n/0-var/seen"])) == record.accuracies["0-var/seen"]


def test_output_of_another_sweep_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = synthetic_sweep(logistic(0.25))
    output = tmp_path / "out.json"
    save_results(output, results)
    before = output.read_bytes()
    assert "not in this sweep" in refused(capsys, "sweep", "seed=0", "--output", output)
    other = dataclasses.replace(results, manifest=dataclasses.replace(results.manifest, code="other"))
    save_results(output, other)
    assert "other training code" in refused(capsys, "sweep", "f", "--points", "10", "--output", output)
    save_results(output, results)
    assert output.read_bytes() == before
    output.write_text("{}")
    assert "not a results file" in refused(capsys, "sweep", "f", "--output", output)


@pytest.mark.parametrize(("threshold", "code"), [(0.2, 0), (0.7, 1)])
def test_verify_says_whether_the_claims_hold(
    threshold: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, page = tmp_path / "results" / "f.json", tmp_path / "sweeps.md"
    save_results(results, synthetic_sweep(logistic(threshold, 0.015)))
    assert main(["sweep", "--verify", str(results), "--markdown", str(page)]) == code
    assert "sweep-f/half-way" in capsys.readouterr().out
    text = page.read_text()
    assert "](results/f.svg)" in text
    assert results.with_suffix(".svg").read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "| leaking | sweep-f/high-end | 5 of 5 |" in text
    assert text.count("**fails**") == (2 if code else 0)


def judged_study(path: Path) -> None:
    """Three seeds; on one the first claim fails, the second holds on all, and the last is skipped."""
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
    axes = (Axis("seed", (0, 1, 2)),)
    manifest = dataclasses.replace(results.manifest, axes=axes)
    save_results(path, dataclasses.replace(results, records=tuple(records), manifest=manifest))


def test_seeds_page_counts_what_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged_study(tmp_path / "seeds" / "paper.json")
    page = tmp_path / "seeds.md"
    assert main(["seeds", str(tmp_path / "seeds"), "--markdown", str(page)]) == 0
    text = page.read_text()
    assert f"| {CLAIMS[0].id} | 2 of 3 | [0.03, 1.00] |" in text, "Clopper-Pearson of 2 in 3 at 1 - .01 / 2 claims"
    assert f"| {CLAIMS[1].id} | 3 of 3 | [0.14, 1.00] |" in text, "Clopper-Pearson of 3 in 3 at 1 - .01 / 2 claims"
    assert f"| {CLAIMS[-1].id} |" not in text, "a claim that was never judged has no rate"
    assert f"1 of 2 hold; fails: {CLAIMS[0].id} |" in text
    assert "](seeds/paper.svg)" in text
    assert (tmp_path / "seeds" / "paper.svg").exists()
    assert "no .json results" in refused(capsys, "seeds", tmp_path / "nothing")
    save_results(tmp_path / "seeds" / "f.json", synthetic_sweep(logistic(0.25)))
    assert "expected seeds alone" in refused(capsys, "seeds", tmp_path / "seeds")


def test_results_file_is_plain_json(tmp_path: Path) -> None:
    results = synthetic_sweep(logistic(0.25), seeds=1)
    save_results(tmp_path / "f.json", results)
    assert load_results(tmp_path / "f.json") == results
    plain = json.loads((tmp_path / "f.json").read_text())
    assert plain["manifest"]["axes"][0]["field"] == FRACTION
    (tmp_path / "f.json").write_text(json.dumps({**plain, "manifest": {}}))
    with pytest.raises(InputError, match=r"f\.json is not a results file of aa sweep \(manifest"):
        load_results(tmp_path / "f.json")
