"""The command line: exit codes, one line for bad input, and quick help."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
import safetensors.torch
import torch

from aa_core.checkpoints import save_checkpoint
from aa_core.claims.claim import Result
from aa_core.claims.expectations import Expectation
from aa_core.claims.registry import CLAIMS
from aa_core.cli.main import main
from aa_core.cli.verify import exit_code
from aa_core.statistics import Verdict
from aa_core.task.config import TaskConfig
from aa_core.training.config import TrainConfig
from aa_core.training.recipes import RECIPES
from circuit_tests.meta.checkpoint_files import hooked_state_dict, small_config, small_parameters
from circuit_tests.meta.tiny import TINY


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one line that a command line is refused with."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:  # argparse
        code = stop.code
    output = capsys.readouterr()
    assert code == 2, f"exit code {code}, printed {output.out} {output.err}"
    assert output.out == "", "a refusal prints nothing on standard output"
    assert output.err.count("\n") == 1, f"expected one line, got {output.err!r}"
    assert output.err.startswith("aa")
    return output.err


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "model" / "step_25.safetensors"
    save_checkpoint(path, small_parameters(), small_config(), 25)
    return path


class Touch:
    """Unpickled by a careless reader, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


def bad_files(folder: Path) -> dict[str, tuple[Path, str]]:
    """Files that are no checkpoint, with what the refusal must say besides the file's name."""
    state = hooked_state_dict(small_parameters())

    def changed(name: str, **entries: torch.Tensor) -> Path:
        torch.save({**state, **{key.replace("__", "."): value for key, value in entries.items()}}, folder / name)
        return folder / name

    whole = changed("whole.pth").read_bytes()
    files = {"empty": b"", "text": b"not a model", "truncated": whole[: len(whole) // 2]}
    for name, data in files.items():
        (folder / f"{name}.pth").write_bytes(data)
    (folder / "code.pth").write_bytes(pickle.dumps(Touch(folder / "code-ran")))
    torch.save({"embed.W_E": Touch(folder / "code-ran")}, folder / "zipped_code.pth")
    torch.save({key: value for key, value in state.items() if key != "unembed.W_U"}, folder / "missing.pth")
    (folder / "no_checkpoints").mkdir()
    (folder / "twice").mkdir()
    for name in ("step_7.pth", "model_step_007.pth"):
        (folder / "twice" / name).write_bytes(whole)
    return {
        "no such file": (folder / "absent.pth", "No such file"),
        "empty": (folder / "empty.pth", "empty"),
        "text": (folder / "text.pth", "not a checkpoint"),
        "truncated": (folder / "truncated.pth", "truncated"),
        "code": (folder / "code.pth", ""),
        "code in a zip": (folder / "zipped_code.pth", ""),
        "missing key": (folder / "missing.pth", "unembed.W_U"),
        "extra key": (changed("extra.pth", blocks__2__attn__W_Q=torch.zeros(1, 16, 8)), "blocks.2.attn.W_Q"),
        "wrong shape": (changed("shape.pth", blocks__0__attn__W_V=torch.zeros(1, 16, 9)), "blocks.0.attn.W_V"),
        "bias": (changed("bias.pth", blocks__1__attn__b_Q=torch.full((1, 8), 0.5)), "blocks.1.attn.b_Q"),
        "first MLP": (changed("mlp.pth", blocks__0__mlp__W_in=torch.ones(16, 32)), "blocks.0.mlp.W_in"),
        "NaN": (changed("nan.pth", blocks__1__mlp__W_in=torch.full((16, 32), torch.nan)), "blocks.1.mlp.W_in"),
        "no checkpoint in a folder": (folder / "no_checkpoints", "no checkpoint"),
        "two files of one step": (folder / "twice", "step_7.pth"),
    }


BAD_FILES = (
    "no such file",
    "empty",
    "text",
    "truncated",
    "code",
    "code in a zip",
    "missing key",
    "extra key",
    "wrong shape",
    "bias",
    "first MLP",
    "NaN",
    "no checkpoint in a folder",
    "two files of one step",
)


@pytest.mark.parametrize("command", ["verify", "ask"])
@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_checkpoint(case: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = bad_files(tmp_path)
    assert set(files) == set(BAD_FILES)
    path, expected = files[case]
    problem = ["a=1, a+2=?"] if command == "ask" else []
    message = refused(capsys, command, *problem, "--checkpoint", path)
    assert path.name in message
    assert expected in message
    assert not (tmp_path / "code-ran").exists(), "code in a checkpoint ran"


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ("z=1, z+2=?", "z"),
        ("a=1, a=2, a+2=?", "a"),
        ("a=1, b=2, c=3, a+2=?", "2"),  # the small task has room for two assignments
        ("a=7, a+2=?", "7"),
        ("a=1, b+2=?", "b"),
        ("a=1", ""),
        ("", ""),
    ],
)
def test_bad_problem(problem: str, expected: str, checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in refused(capsys, "ask", problem, "--checkpoint", checkpoint)


@pytest.mark.parametrize("seeds", ["", "x", "4-0", "1,,2", "-1", "1.5", "0-99999999", "²", "1 2"])
def test_bad_seeds(seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "seeds" in refused(capsys, "train", f"--seeds={seeds}")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "COMMAND"),
        (["dance"], "dance"),
        (["train"], "--seed"),
        (["train", "--seed", "x"], "--seed"),
        (["train", "--seed", "-1"], "seed"),
        (["train", "--seed", "0", "--recipe", "no"], "--recipe"),
        (["train", "--seed", "0", "--device", "no"], "device"),
        (["train", "--seed", "0", "--threads", "0"], "threads"),
        (["verify", "--claims", "no/such"], "no/such"),
        (["verify", "--claims", ","], "--claims"),
        (["verify", "--seed", "1", "--checkpoint", "x"], "--checkpoint"),
        (["verify", "--checkpoint", "x", "--train-fraction", "2"], "train_fraction"),
        (["verify", "--seed", "1", "--split-seed", "2"], "split"),
    ],
)
def test_bad_options(arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = ["--cache", str(tmp_path)] if "--seed" in arguments else []
    assert expected in refused(capsys, *arguments, *cache)


@pytest.fixture
def tiny_recipe(monkeypatch: pytest.MonkeyPatch) -> TrainConfig:
    monkeypatch.setitem(RECIPES, "tiny", TINY)
    return TINY


def test_cache_that_cannot_be_written(
    tiny_recipe: TrainConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert "cache" in refused(capsys, "train", "--seed", "0", "--recipe", "tiny", "--cache", tmp_path / "file")


def full_disk(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk(
    tiny_recipe: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "fsync", full_disk)
    message = refused(capsys, "train", "--seed", "0", "--recipe", "tiny", "--cache", tmp_path)
    assert "No space left" in message
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".tmp"], "a half-written file stays"


def test_full_disk_leaves_an_old_report_whole(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    report.write_text("old")
    monkeypatch.setattr(os, "fsync", full_disk)
    code = main(["verify", "--checkpoint", str(checkpoint), "--claims", "accuracy", "--json", str(report)])
    assert code == 2
    assert "No space left" in capsys.readouterr().err
    assert report.read_text() == "old"


def test_train_then_find(tiny_recipe: TrainConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "--seeds", "0,2", "--recipe", "tiny", "--cache", str(tmp_path)]
    assert main(arguments) == 0
    first = capsys.readouterr()
    assert first.err.count("training, at step") == 2, "without a terminal one line tells that a run is in training"
    manifests = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/manifest.json")}
    assert len(manifests) == 2
    assert main(arguments) == 0
    again = capsys.readouterr()
    assert (again.out, again.err) == (first.out, "")
    assert {path: path.stat().st_mtime_ns for path in manifests} == manifests, "a finished run was trained again"


def test_verify_writes_what_it_prints(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "new" / "report.json"
    code = main(["verify", "--checkpoint", str(checkpoint), "--json", str(report)])
    printed = capsys.readouterr().out
    content = json.loads(report.read_text())
    assert content["subject"]["step"] == 25
    assert content["subject"]["format"] == "assign-and-add"
    assert content["subject"]["config"]["seed"] == 0
    verdicts = {claim["id"]: claim["verdict"] for claim in content["claims"]}
    assert code == 1, "an untrained model passed"
    assert len(verdicts) == len(CLAIMS)
    for claim_id, verdict in verdicts.items():
        assert re.search(rf"^ *{re.escape(claim_id)} .*{verdict}( \(condition\))? *$", printed, re.MULTILINE), claim_id


def test_same_weights_give_the_same_report(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "step_25.pth"
    torch.save(hooked_state_dict(safetensors.torch.load_file(checkpoint)), foreign)
    split = ["--split-seed", "3", "--train-fraction", "0.6", "--never-left", "e", "--never-right", "b"]
    reports = []
    for path, options in ((checkpoint, []), (foreign, split)):
        main(["verify", "--checkpoint", str(path), *options, "--json", str(tmp_path / "report.json")])
        reports.append(json.loads((tmp_path / "report.json").read_text()))
    assert reports[0]["claims"] == reports[1]["claims"]
    assert reports[0]["subject"]["hash"] == reports[1]["subject"]["hash"]
    assert reports[1]["subject"]["format"] == "hooked-transformer"


def test_ask(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ask", "a=1, c=3, a+c=?", "--checkpoint", str(checkpoint)])
    printed = capsys.readouterr().out
    answer = re.search(r"model (\d+), true 4: (right|wrong)", printed)
    assert answer is not None, printed
    assert code == (0 if answer[1] == "4" else 1)
    assert (answer[2] == "right") == (answer[1] == "4")
    for symbol in ("a", "3 *", "1 *", "+", "="):
        assert re.search(rf"^\s*\d+\s+{re.escape(symbol)}\s", printed, re.MULTILINE), f"{symbol} is not in the table"


def test_ask_a_model_that_overflows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = {name: weight * 1e30 for name, weight in small_parameters().items()}
    torch.save(hooked_state_dict(weights), tmp_path / "huge.pth")
    split = ["--never-left", "d", "--never-right", "a"]
    message = refused(capsys, "ask", "b=1, 0+b=?", "--checkpoint", tmp_path / "huge.pth", *split)
    assert "huge.pth" in message
    assert "so large that no answer is a finite number" in message


def result(verdict: str, expect: Literal["fails", "skip"] | None = None) -> Result:
    expectation = Expectation(claim="*", expect=expect, reason="known") if expect else None
    return Result(CLAIMS[0], Verdict(verdict), (), expectation=expectation)


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([], 0),
        ([result("holds"), result("skipped")], 0),
        ([result("skipped"), result("skipped")], 3),  # nothing was judged
        ([result("skipped", "skip")], 0),
        ([result("holds"), result("undecided")], 3),
        ([result("fails"), result("undecided"), result("holds")], 1),
        ([result("fails", "fails"), result("undecided", "fails"), result("skipped", "fails")], 0),
        ([result("holds", "fails")], 1),
        ([result("fails", "fails"), result("undecided")], 3),
    ],
)
def test_exit_code(results: list[Result], code: int) -> None:
    assert exit_code(results) == code


EXPECTATIONS = """
[[expectation]]
claim = "accuracy/*"
model = "checkpoint"
reason = "never trained"

[[expectation]]
claim = "qk-identity/*"
expect = "skip"
reason = "not asked"

[[expectation]]
claim = "no/such"
reason = "a slip"
"""


def test_expectations(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, report = tmp_path / "expectations.toml", tmp_path / "report.json"
    path.write_text(EXPECTATIONS)
    options = {"--checkpoint": checkpoint, "--claims": "accuracy,qk-identity", "--json": report, "--expectations": path}
    code = main(["verify", *(str(part) for option in options.items() for part in option)])
    assert code == 0
    assert "no claim on checkpoint matches the expectation 'no/such'" in capsys.readouterr().err
    claims = json.loads(report.read_text())["claims"]
    assert {claim["verdict"] for claim in claims if claim["id"].startswith("accuracy")} == {"fails"}
    skipped = [claim for claim in claims if claim["id"].startswith("qk-identity")]
    assert {(claim["verdict"], claim["reason"], claim["measured"]) for claim in skipped} == {
        ("skipped", "not asked", None)
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[expectation]]\nclaim = 'x'", "reason"),
        ("[[expectation]]\nclaim = 'x'\nreason = ''", "reason"),
        ("[[expectation]]\nclaim = 'x'\nreason = 'y'\nexpect = 'holds'", "expect"),
        ("[[expectation]]\nclaim = 'x'\nreason = 'y'\nseed = 1", "seed"),
        ("[expectation]", "expectation"),
        ("a = " + "[" * 20_000, "is not a TOML file"),
        ("a = " + "1" * 20_000, "is not a TOML file"),
        ("\xff", "is not a TOML file"),
        ("xfail: x", "TOML"),
        ("\x80", "TOML"),
    ],
)
def test_bad_expectations(
    text: str, expected: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "expectations.toml"
    path.write_text(text, encoding="latin-1")
    message = refused(capsys, "verify", "--checkpoint", checkpoint, "--expectations", path)
    assert path.name in message
    assert expected in message


def test_help_does_not_import_torch() -> None:
    script = "import sys, aa_core.cli.main as m; m.parser(); print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_report_does_not_overwrite_the_model(
    option: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = checkpoint.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(checkpoint)
    for output in (checkpoint, link):
        message = refused(capsys, "verify", "--checkpoint", checkpoint, option, output)
        assert f"{option} {output} is what --checkpoint reads" in message
    assert checkpoint.read_bytes() == before


def test_reports_do_not_overwrite_each_other(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report"
    assert "--html" in refused(capsys, "verify", "--checkpoint", checkpoint, "--json", report, "--html", report)


def test_pipes_are_neither_read_nor_replaced(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "step_1.pth"
    os.mkfifo(pipe)
    assert "not a regular file" in refused(capsys, "verify", "--checkpoint", pipe)
    assert "not a regular file" in refused(capsys, "verify", "--checkpoint", tmp_path)
    assert "not a regular file" in refused(capsys, "verify", "--checkpoint", checkpoint, "--json", pipe)
    assert pipe.is_fifo()
    assert "not a regular file" in refused(capsys, "verify", "--checkpoint", "/dev/zero")


def test_an_empty_path_is_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--checkpoint" in refused(capsys, "verify", "--checkpoint", "")


def test_the_fixture_replaces_nothing_but_a_fixture(
    tiny_recipe: TrainConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thesis = tmp_path / "work" / "thesis.tex"
    thesis.parent.mkdir()
    thesis.write_text("years")
    options = ["fixture", "--seed", "0", "--recipe", "tiny", "--cache", str(tmp_path / "cache"), "--output"]
    main([*options, str(tmp_path / "fresh")])
    capsys.readouterr()
    assert "is not a fixture" in refused(capsys, *options, thesis.parent)
    assert thesis.read_text() == "years"
    before = {path.name: path.read_bytes() for path in (tmp_path / "fresh").rglob("*") if path.is_file()}
    assert before
    assert main([*options, str(tmp_path / "fresh")]) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "fresh").rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "fresh", "work"], "something stays behind"


@pytest.mark.parametrize("text", ["[", '{"subject": {}, "claims": []}', '{"subject": 3, "claims": []}', "[" * 100_000])
def test_results_of_odd_files(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd.json").write_text(text)
    assert "odd.json" in refused(capsys, "results", tmp_path)


@pytest.mark.parametrize(
    ("scale", "modulus", "n_assignments", "fraction"),
    [
        (1e20, 7, 2, 0.6),
        (1e-30, 7, 2, 0.6),
        (0.0, 7, 2, 0.6),
        (1.0, 2, 2, 0.6),
        (1.0, 3, 2, 0.6),
        (1.0, 4, 2, 0.6),
        (1.0, 3, 4, 0.6),  # fewer constants than a full prefix has assignments
        (1.0, 7, 2, 0.021),  # one training pair
        (1.0, 7, 2, 0.045),  # two
        (1.0, 7, 2, 1.0),
    ],
)
@pytest.mark.filterwarnings("error")
def test_odd_models_are_judged_without_a_warning(
    scale: float,
    modulus: int,
    n_assignments: int,
    fraction: float,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    task = TaskConfig(modulus, n_variables=5, max_assignments=n_assignments, n_ctx=2 * n_assignments + 4)
    weights = {name: weight * scale for name, weight in small_parameters(task=task).items()}
    torch.save(hooked_state_dict(weights), tmp_path / "odd.pth")
    split = ["--never-left", "e", "--never-right", "b", "--train-fraction", str(fraction)]
    assert main(["verify", "--checkpoint", str(tmp_path / "odd.pth"), *split]) in (0, 1)
    assert capsys.readouterr().err == ""


def run_command(command: str, checkpoint: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line in a shell, where `aa` is ours and `MODEL` the checkpoint."""
    script = f'aa() {{ {sys.executable} -m aa_core.cli.main "$@"; }}; {command}'
    variables = {**os.environ, "MODEL": str(checkpoint), **environment}
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=variables, timeout=100, check=False
    )


@pytest.mark.slow
def test_output_that_cannot_be_written(checkpoint: Path) -> None:
    full = run_command("aa claims > /dev/full", checkpoint)
    assert (full.returncode, full.stderr.count("\n")) == (2, 1), full.stderr
    pipe = run_command("set -o pipefail; aa claims | true", checkpoint)
    assert (pipe.returncode, pipe.stderr) == (141, "")
    plain = run_command('aa ask "a=1, a+2=?" --checkpoint "$MODEL"', checkpoint, PYTHONIOENCODING="ascii")
    assert "Traceback" not in plain.stderr
    assert "blocks.0" in plain.stdout
