"""Every way in which a run's folder can be other than it was left, finished or not."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from aa_core.runs import Run
from aa_core.runs.entry import DamagedRunError, finished_run
from aa_core.runs.unfinished import started_or_resumed
from circuit_tests.meta.tiny import TINY, StoppedError, contents, stop_at, tiny_store, unfinished


def alter(path: Path) -> None:
    """Flip a bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def edit_json(path: Path, **entries: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


CHECKPOINT = "checkpoints/step_000012.safetensors"

FINISHED_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "manifest truncated": (lambda f: truncate(f / "manifest.json"), "manifest.json is not a manifest"),
    "manifest empty": (lambda f: (f / "manifest.json").write_bytes(b""), "manifest.json is not a manifest"),
    "manifest of bytes": (lambda f: (f / "manifest.json").write_bytes(b"\xff\0"), "manifest.json is not a manifest"),
    "manifest of other code": (lambda f: edit_json(f / "manifest.json", code="0"), "manifest.json is of another run"),
    "manifest of other key": (lambda f: edit_json(f / "manifest.json", key="0"), "manifest.json is of another run"),
    "manifest of nothing": (lambda f: edit_json(f / "manifest.json", files={}), "is missing from manifest.json"),
    "config altered": (lambda f: alter(f / "config.json"), "config.json is not the config of this run"),
    "config missing": (lambda f: (f / "config.json").unlink(), "config.json is missing"),
    "metrics altered": (lambda f: alter(f / "metrics.jsonl"), "metrics.jsonl does not match manifest.json"),
    "metrics truncated": (lambda f: truncate(f / "metrics.jsonl"), "metrics.jsonl does not match manifest.json"),
    "checkpoint altered": (lambda f: alter(f / CHECKPOINT), "step_000012.safetensors does not match manifest.json"),
    "checkpoint empty": (lambda f: (f / CHECKPOINT).write_bytes(b""), "step_000012.safetensors does not match"),
    "checkpoint missing": (lambda f: (f / CHECKPOINT).unlink(), "step_000012.safetensors is missing"),
    "checkpoints missing": (lambda f: shutil.rmtree(f / "checkpoints"), "step_000000.safetensors is missing"),
    "checkpoint is a folder": (
        lambda f: ((f / CHECKPOINT).unlink(), (f / CHECKPOINT).mkdir()),
        "step_000012.safetensors is missing",
    ),
    "checkpoint extra": (
        lambda f: shutil.copy(f / CHECKPOINT, f / "checkpoints/step_000013.safetensors"),
        "step_000013.safetensors should not be there",
    ),
    "checkpoint of another step": (
        lambda f: shutil.copy(f / "checkpoints/step_000008.safetensors", f / CHECKPOINT),
        "step_000012.safetensors does not match manifest.json",
    ),
}


@pytest.mark.parametrize("kind", FINISHED_DAMAGE)
def test_damage_of_a_finished_run_is_noticed(tmp_path: Path, reference: Run, kind: str):
    damage, says = FINISHED_DAMAGE[kind]
    folder = shutil.copytree(reference.folder, tmp_path / reference.folder.name)
    damage(folder)
    with pytest.raises(DamagedRunError, match=says) as caught:
        finished_run(folder)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an unfinished run, to be copied."""
    return unfinished(tmp_path_factory.mktemp("stopped"))


def put_foreign_state(folder: Path) -> None:
    """The state of a run with another seed, whole in itself."""
    other = dataclasses.replace(TINY, seed=1)
    with pytest.raises(StoppedError):
        tiny_store(folder.parent / "other").run(other, progress=stop_at(35))
    (foreign,) = (folder.parent / "other").rglob("state.safetensors")
    shutil.copy(foreign, folder)


UNFINISHED_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "state truncated": (lambda f: truncate(f / "state.safetensors"), "state.safetensors cannot be used"),
    "state empty": (lambda f: (f / "state.safetensors").write_bytes(b""), "state.safetensors cannot be used"),
    "state altered": (lambda f: alter(f / "state.safetensors"), "state.safetensors does not match its own hash"),
    "state lost": (lambda f: (f / "state.safetensors").unlink(), "state.safetensors is missing"),
    "state of another run": (put_foreign_state, "state.safetensors is of another run"),
    "config altered": (lambda f: alter(f / "config.json"), "config.json is not the config of this run"),
    "config missing": (lambda f: (f / "config.json").unlink(), "config.json is missing"),
    "rows lost": (
        lambda f: (f / "metrics.jsonl").write_text('{"step": 5}\n'),
        "metrics.jsonl lacks rows up to step 30",
    ),
    "rows garbled": (lambda f: (f / "metrics.jsonl").write_bytes(b"{\xff\n" * 9), "not a row of metrics"),
    "rows of something else": (lambda f: (f / "metrics.jsonl").write_text("[1]\n" * 9), "not a row of metrics"),
    "checkpoint altered": (lambda f: alter(f / CHECKPOINT), "step_000012.safetensors cannot be used"),
    "checkpoint missing": (lambda f: (f / CHECKPOINT).unlink(), "step_000012.safetensors cannot be used"),
    "checkpoint extra": (
        lambda f: shutil.copy(f / CHECKPOINT, f / "checkpoints/step_000013.safetensors"),
        "step_000013.safetensors should not be there",
    ),
    "checkpoint of another step": (
        lambda f: shutil.copy(f / "checkpoints/step_000008.safetensors", f / CHECKPOINT),
        "step_000012.safetensors is of another step",
    ),
}


@pytest.mark.parametrize("kind", UNFINISHED_DAMAGE)
def test_damage_of_an_unfinished_run_is_noticed(tmp_path: Path, stopped: Path, kind: str):
    damage, says = UNFINISHED_DAMAGE[kind]
    folder = shutil.copytree(stopped, tmp_path / stopped.name)
    damage(folder)
    with pytest.raises(DamagedRunError, match=says) as caught:
        started_or_resumed(folder, TINY, torch.device("cpu"))
    assert "\n" not in str(caught.value)


def test_an_undamaged_folder_is_accepted(tmp_path: Path, reference: Run, stopped: Path):
    assert finished_run(shutil.copytree(reference.folder, tmp_path / reference.folder.name)) is not None
    folder = shutil.copytree(stopped, tmp_path / "stopped" / stopped.name)
    assert started_or_resumed(folder, TINY, torch.device("cpu")).state.step == 30


@pytest.mark.parametrize("kind", ["finished", "manifest lost", "unfinished"])
def test_a_damaged_run_is_set_aside_and_trained_again(tmp_path: Path, reference: Run, stopped: Path, kind: str):
    source = stopped if kind == "unfinished" else reference.folder
    folder = shutil.copytree(source, tmp_path / "runs" / source.name)
    if kind == "manifest lost":
        (folder / "manifest.json").unlink()
    else:
        alter(folder / CHECKPOINT)
    damaged = {path.relative_to(folder) for path in folder.rglob("*")}
    messages: list[str] = []
    store = tiny_store(tmp_path, messages)
    assert store.find(TINY) is None
    assert store.runs() == []
    assert len(messages) == (2 if kind == "finished" else 0), "only what was finished can be found damaged"
    messages.clear()

    run = store.run(TINY)
    aside = folder.with_name(f"{folder.name}.damaged-1")
    (message,) = messages
    assert message.startswith(f"{folder} was damaged: ")
    assert aside.name in message
    assert "\n" not in message
    assert {path.relative_to(aside) for path in aside.rglob("*")} == damaged, "what was there is kept"
    assert contents(run) == contents(reference)
    assert store.runs() == [run], "what is set aside is no run any more"


def test_what_is_set_aside_is_never_overwritten(tmp_path: Path, reference: Run):
    folder = shutil.copytree(reference.folder, tmp_path / "runs" / reference.folder.name)
    older = folder.with_name(f"{folder.name}.damaged-1")
    older.mkdir()
    alter(folder / "metrics.jsonl")
    messages: list[str] = []
    tiny_store(tmp_path, messages).run(TINY)
    assert list(older.iterdir()) == []
    assert f"moved it to {folder.name}.damaged-2" in messages[0]
