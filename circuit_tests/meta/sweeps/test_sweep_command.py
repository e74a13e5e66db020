"""`aa sweep`: bad input, and what survives interruption, failure and a second sweep."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from aa_core.cli.main import main
from aa_core.errors import InputError
from aa_core.sweeps import execution
from aa_core.sweeps.point import Failure, Work
from aa_core.sweeps.record import RunRecord, plain_config
from aa_core.sweeps.results import SweepResults, load_results, save_results
from aa_core.training.config import TrainConfig
from aa_core.training.recipes import RECIPES
from circuit_tests.meta.command_line import refused
from circuit_tests.meta.sweeps.sweep_results import logistic, synthetic_sweep
from circuit_tests.meta.tiny import TINY


@pytest.fixture(autouse=True)
def tiny_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(RECIPES, "tiny", TINY)
    monkeypatch.setenv("AA_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "nothing to sweep"),
        (["x=1"], "no field x: no 'x' among task.FIELD, model.FIELD, split.FIELD, seed, "),
        (["split=1"], "fields of its own: split.train_fraction, "),
        (["split.x=1"], "no field split.x"),
        (["seed.x=1"], "no field seed.x"),
        (["checkpoint_every=1"], "cannot be swept"),
        (["seed"], "expected f, r or FIELD=VALUES"),
        (["seed=x"], "expected seeds"),
        (["steps=1.5"], "valid integer"),
        (["steps=1:2:3"], "valid integer"),
        (["learning_rate="], "valid number"),
        (["learning_rate=1,x"], "'x'"),
        (["f=0.1:nan:3"], "finite"),
        (["f=0.1:0.2:0"], "expected 1 to"),
        (["f=0.1,0.1"], "twice"),
        (["f", "split.train_fraction=0.1"], "twice"),
        (["seed=1", "--seeds", "0-1"], "twice"),
        (["f=0,0.5"], "train_fraction is 0.0"),
        (["f=0.00001"], "no training pair"),
        (["seed=0-9999", "f"], "more than"),
        (["f", "--recipe", "none"], "--recipe 'none': expected one of"),
        (["f=0.1", "--points", "3"], "--points is for f and r"),
        (["f", "--points", "0"], "expected 1 to"),
        (["f", "--jobs", "0"], "--jobs is 0, expected 1 to"),
        (["f", "--threads", "0"], "--threads is 0, expected 1 to"),
        (["f", "--jobs", "2", "--scheduler", "tcp://127.0.0.1:9"], "--jobs is for this machine"),
        (["f", "--output", "a", "--csv", "a"], "is what --output writes"),
        (["f", "--output", "."], "not a regular file"),
        (["f", "--markdown", "page.md"], "--markdown goes with --verify"),
        (["f", "--verify", "f.json"], "leave AXIS"),
        (["--verify", "absent.json"], "cannot read absent.json"),
        (["--verify", "a.json", "--markdown", "a.json"], "is what --verify a.json reads"),
        (["--verify", "a.json", "--markdown", "."], "not a regular file"),
        (["--verify", "a.json", "--jobs", "1"], "leave --jobs out"),
        (["--verify", "a.json", "--csv", "a.csv"], "leave --csv out"),
        (["--verify", "a.json", "--recipe", "fast"], "leave --recipe out"),
        (["--verify", "pages/f.svg", "--markdown", "pages.md"], "the figure pages/f.svg is what --verify"),
        (["--verify", "a/f.json", "b/f.json", "--markdown", "p.md"], "the figure p/f.svg is what the figure writes"),
        (["f", "--cache", __file__], "is not a folder"),
        (["f", "--output", "x" * 300], "can be no path"),
        (["f=0.1", "--recipe", "fast", "r=0.1"], "stand together"),
        (["f=0.1:0.9"], "FIRST:LAST:N"),
        (["split.seed=x"], "split.seed = 'x'"),
    ],
)
def test_bad_input(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in refused(capsys, "sweep", *arguments)


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


def test_a_terminated_sweep_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, real = tmp_path / "out.json", execution.run_point
    handler = signal.getsignal(signal.SIGTERM)

    def terminated(config: TrainConfig, work: Work) -> RunRecord | Failure:
        if config.seed == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(config, work)

    monkeypatch.setattr(execution, "run_point", terminated)
    assert sweep("--seeds", "0-2", "--output", output) == 143
    assert [record.config["seed"] for record in load_results(output).records] == [0]
    assert signal.getsignal(signal.SIGTERM) is handler
    monkeypatch.setattr(execution, "run_point", real)
    assert sweep("--seeds", "0-2", "--output", output) == 0


@pytest.mark.slow
def test_workers_end_with_a_terminated_sweep(tmp_path: Path) -> None:
    axes = ("seed=0-1", "steps=50000", "decay_steps=0")
    command = [sys.executable, "-m", "aa_core.cli.main", "sweep", *axes, "--jobs", "2", "--cache", str(tmp_path)]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(1200):
            if len(list(tmp_path.glob("runs/*.lock"))) == 2 or process.poll() is not None:
                break
            time.sleep(0.1)
        process.terminate()
        _, error = process.communicate(timeout=120)
        assert process.returncode == 143, error
        assert error.endswith("aa: interrupted; run the same command again to go on\n")
        for _ in range(600):
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)
        pytest.fail("a worker trains on")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_two_sweeps_do_not_write_one_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.json"
    real, refusals = execution.run_point, list[str]()

    def meanwhile(config: TrainConfig, work: Work) -> RunRecord | Failure:
        refusals.append(refused(capsys, "sweep", "seed=0-3", "--recipe", "tiny", "--output", output))
        return real(config, work)

    monkeypatch.setattr(execution, "run_point", meanwhile)
    assert sweep("seed=0", "--output", output) == 0
    assert "another sweep writes it" in refusals[0]
    assert len(load_results(output).records) == 1


def test_records_stay_until_they_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out.json"
    judge = ["sweep", "seed=0-1", "--recipe", "tiny", "--jobs", "1", "--judge", "--output", str(output)]
    assert sweep("seed=0-1", "--output", output) == 0
    real = execution.run_point

    def interrupted(config: TrainConfig, work: Work) -> RunRecord | Failure:
        if config.seed == 1:
            raise KeyboardInterrupt
        return real(config, work)

    monkeypatch.setattr(execution, "run_point", interrupted)
    assert main(judge) == 130
    assert [record.claims is None for record in load_results(output).records] == [False, True]
    monkeypatch.setattr(execution, "run_point", real)
    assert main(judge) == 0
    assert [record.claims is None for record in load_results(output).records] == [False, False]


def test_verdicts_of_other_judging_code_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out.json"
    judge = ["sweep", "seed=0", "--recipe", "tiny", "--jobs", "1", "--output", str(output)]
    assert main(judge) == 0
    finished = load_results(output)
    [record] = finished.records
    stale = dataclasses.replace(finished.manifest, judging="older", versions={"torch": "older"})
    save_results(output, SweepResults(stale, (dataclasses.replace(record, claims={}),)))
    assert main(judge) == 0
    again = load_results(output)
    assert again.records == finished.records
    assert again.manifest.judging == finished.manifest.judging
    assert again.manifest.versions == {"torch": "older"}, "where the sweep was started"


def test_workers_end_with_the_process_that_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(execution, "run_point", lambda config, work: Failure(plain_config(config), "done"))
    point = execution._run(TINY, Work(), os.getppid())
    assert isinstance(point, Failure)
    with pytest.raises(SystemExit):
        execution._run(TINY, Work(), 2**22 + 1)


@pytest.mark.slow
def test_processes_of_this_machine_give_what_one_does(tmp_path: Path) -> None:
    configs = [dataclasses.replace(TINY, seed=seed) for seed in range(3)]
    alone = [execution.run_point(config, Work(cache=tmp_path / "alone")) for config in configs]
    together = list(execution.run_points(configs, Work(cache=tmp_path / "together"), jobs=2))
    assert len(list(tmp_path.glob("together/runs/*/manifest.json"))) == 3

    def by_seed(points: list[RunRecord | Failure]) -> list[RunRecord | Failure]:
        """All but the time, and the name: the recipe `tiny` is known to this process alone."""
        same = [
            dataclasses.replace(point, seconds=0, run="") if isinstance(point, RunRecord) else point for point in points
        ]
        return sorted(same, key=lambda point: point.config["seed"])

    assert by_seed(together) == by_seed(alone)
    assert all(isinstance(point, RunRecord) for point in together)


@pytest.mark.slow
def test_a_worker_that_dies_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stranger = SimpleNamespace(getpid=lambda: 2**22 + 1)  # workers leave where another process asked
    monkeypatch.setattr(execution, "os", stranger)
    with pytest.raises(InputError, match="a process of the sweep died"):
        list(execution.run_points([TINY, dataclasses.replace(TINY, seed=1)], Work(cache=tmp_path), jobs=2))


def test_seeds_alone_are_judged_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[bool] = []

    def note(config: TrainConfig, work: Work) -> Failure:
        judged.append(work.judge)
        return Failure(plain_config(config), "noted")

    monkeypatch.setattr(execution, "run_point", note)
    cases = {
        "seed=0": True,
        "seed=0 --no-judge": False,
        "f=0.5 seed=0-1": True,
        "f=0.5,0.6": False,
        "f=0.5": False,
        "f=0.5 --judge": True,
    }
    for arguments, expected in cases.items():
        judged.clear()
        assert main(["sweep", "--recipe", "tiny", "--jobs", "1", *arguments.split()]) == 1
        assert set(judged) == {expected}, arguments


@pytest.mark.parametrize("asked", [["--seeds", "any"], ["seed=any"]])
def test_a_drawn_seed_is_written_into_the_command(asked: list[str], tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    assert sweep(*asked, "--output", output) == 0
    results = load_results(output)
    [record] = results.records
    assert f" {record.config['seed']} " in f"{results.manifest.command.replace('=', ' ')} "
    assert "any" not in results.manifest.command


def test_record_by_other_training_code_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    record = dataclasses.replace(synthetic_sweep(logistic(0.25)).records[0], code="other")
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
    assert "learning_rate=1e+30: failed: training diverged" in capsys.readouterr().err
    assert results.manifest.command == "aa sweep learning_rate=1e30,1e-3 seed=4 --recipe tiny --no-judge"
    [row] = csv.DictReader(io.StringIO(table.read_text()))
    assert (row["learning_rate"], row["seed"], row["state"]) == ("0.001", "4", record.state)
    assert (int(row["right/0-var/seen"]), int(row["n/0-var/seen"])) == record.accuracies["0-var/seen"]


def test_output_of_another_sweep_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = synthetic_sweep(logistic(0.25))
    output = tmp_path / "out.json"
    save_results(output, results)
    before = output.read_bytes()
    message = refused(capsys, "sweep", "seed=0", "--output", output)
    assert "holds split.train_fraction=0.06, which is not in this sweep" in message
    records = tuple(dataclasses.replace(record, code="other") for record in results.records)
    manifest = dataclasses.replace(results.manifest, code="other")
    save_results(output, dataclasses.replace(results, manifest=manifest, records=records))
    assert "other training code" in refused(capsys, "sweep", "f", "--points", "10", "--output", output)
    save_results(output, results)
    assert output.read_bytes() == before
    output.write_text("{}")
    assert "not a results file" in refused(capsys, "sweep", "f", "--output", output)
