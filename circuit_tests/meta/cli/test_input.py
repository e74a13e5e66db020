"""Bad input to the commands: one line, which says what to do."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
import torch

from aa_core.cli.main import main
from aa_core.task.config import TaskConfig
from aa_core.training.config import TrainConfig
from circuit_tests.meta.checkpoint_files import hooked_state_dict, small_parameters
from circuit_tests.meta.command_line import refused


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
        (["verify", "--recipe", "fast"], "--recipe of no seed: give --seed N too"),
        (["ask", "0+1=?", "--recipe", "no", "--device", "no"], "--recipe and --device of no seed"),
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


def test_cache_that_cannot_be_written(
    tiny_recipe: TrainConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert "cache" in refused(capsys, "train", "--seed", "0", "--recipe", "tiny", "--cache", tmp_path / "file")


def test_ask_a_model_that_overflows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = {name: weight * 1e30 for name, weight in small_parameters().items()}
    torch.save(hooked_state_dict(weights), tmp_path / "huge.pth")
    split = ["--never-left", "d", "--never-right", "a"]
    message = refused(capsys, "ask", "b=1, 0+b=?", "--checkpoint", tmp_path / "huge.pth", *split)
    assert "huge.pth" in message
    assert "so large that no answer is a finite number" in message


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
