"""A folder of checkpoints is a run in the order of its steps, or is refused."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest
from torch import Tensor

from aa_core.checkpoints import Checkpoint, Trajectory, load_subject, load_trajectory, save_checkpoint
from aa_core.errors import InputError
from aa_core.task.config import TaskConfig
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.checkpoint_files import (
    MODEL,
    TASK,
    assert_holds,
    hooked_state_dict,
    refusal,
    small_config,
    small_parameters,
    torch_bytes,
)


def write_foreign(folder: Path, names: list[str]) -> dict[str, dict[str, Tensor]]:
    """One file of different weights for each name."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {name: small_parameters(seed) for seed, name in enumerate(names)}
    for name, parameters in written.items():
        (folder / name).write_bytes(torch_bytes(hooked_state_dict(parameters)))
    return written


def test_foreign_folder_in_order_of_steps(tmp_path: Path) -> None:
    names = ["checkpoint_step_2.pth", "checkpoint_step_10.pth", "checkpoint_step_101.pt", "model_state_dict.pth"]
    written = write_foreign(tmp_path, names)
    for ignored in (".checkpoint_step_3.pth", ".step_4.safetensors.abc.tmp", "notes.txt", "metrics.json"):
        (tmp_path / ignored).write_text("not a checkpoint")
    (tmp_path / "step_5.pth").mkdir()
    trajectory = load_trajectory(tmp_path)
    assert [checkpoint.path.name for checkpoint in trajectory] == names
    assert [checkpoint.step for checkpoint in trajectory] == [2, 10, 101, None]
    for checkpoint in trajectory:
        assert_holds(checkpoint, written[checkpoint.path.name])
    assert (len(trajectory), trajectory.task, trajectory.model, trajectory.path) == (4, TASK, MODEL, tmp_path)
    assert trajectory.final.path.name == "model_state_dict.pth"


def test_run_folder(tmp_path: Path) -> None:
    for step in (50, 0, 5):
        path = tmp_path / "checkpoints" / f"step_{step:06d}.safetensors"
        save_checkpoint(path, small_parameters(step), small_config(), step)
    (tmp_path / "state.safetensors").write_bytes(b"optimizer state, not a checkpoint")
    trajectory = load_trajectory(tmp_path)
    assert [checkpoint.step for checkpoint in trajectory] == [0, 5, 50]
    assert trajectory.path == tmp_path
    assert trajectory.split == Split(TASK, small_config().split)
    inner = load_trajectory(tmp_path / "checkpoints")
    assert [checkpoint.sha256 for checkpoint in inner] == [checkpoint.sha256 for checkpoint in trajectory]


def test_trajectory_draws_its_split_once(tmp_path: Path) -> None:
    write_foreign(tmp_path, ["step_1.pth", "step_2.pth"])
    given = SplitConfig(0.5, never_left="a", never_right="")
    first, second = load_trajectory(tmp_path, given)
    assert first.split is second.split
    assert first.split == Split(TASK, given)


def test_subject_is_a_file_or_a_folder(tmp_path: Path) -> None:
    write_foreign(tmp_path, ["step_1.pth"])
    given = SplitConfig(0.5, never_left="a", never_right="")
    for path, kind in ((tmp_path, Trajectory), (tmp_path / "step_1.pth", Checkpoint)):
        subject = load_subject(path, given)
        assert isinstance(subject, kind)
        assert subject.split.config == given


def test_trajectory_refuses_disorder(tmp_path: Path) -> None:
    write_foreign(tmp_path, ["step_1.pth", "step_2.pth", "final.pth"])
    checkpoints = load_trajectory(tmp_path).checkpoints
    for order in itertools.permutations(checkpoints):
        if order != checkpoints:
            with pytest.raises(InputError, match="sorted by step"):
                Trajectory(order, tmp_path)
    twin = dataclasses.replace(checkpoints[1], path=tmp_path / "twin.pth")
    with pytest.raises(InputError, match=r"step_2\.pth and .*twin\.pth both have step 2"):
        Trajectory((*checkpoints[:2], twin), tmp_path)


# Folders that are no trajectory


def foreign(path: Path, seed: int = 0, task: TaskConfig = TASK) -> None:
    path.write_bytes(torch_bytes(small_parameters(seed, task)))


def test_folder_without_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    foreign(tmp_path / ".step_1.pth")
    assert "no checkpoint in" in refusal(tmp_path)


def test_trajectory_that_is_no_folder(tmp_path: Path) -> None:
    foreign(tmp_path / "step_1.pth")
    for path in (tmp_path / "step_1.pth", tmp_path / "gone"):
        with pytest.raises(InputError, match="expected a folder of checkpoints"):
            load_trajectory(path)


def test_two_files_with_one_step(tmp_path: Path) -> None:
    foreign(tmp_path / "step_1.pth")
    foreign(tmp_path / "step_01.pt")
    paths = f"{tmp_path / 'step_01.pt'} and {tmp_path / 'step_1.pth'}"
    assert f"{paths} both have step 1" in refusal(tmp_path)


def test_two_files_without_a_step(tmp_path: Path) -> None:
    for name in ("step_1.pth", "final.pth", "model.pth"):
        foreign(tmp_path / name)
    paths = f"{tmp_path / 'final.pth'} and {tmp_path / 'model.pth'}"
    assert f"{paths} both have no step in their names" in refusal(tmp_path)


def test_mixed_sizes(tmp_path: Path) -> None:
    foreign(tmp_path / "step_1.pth")
    foreign(tmp_path / "step_2.pth", task=dataclasses.replace(TASK, modulus=5))
    assert f"{tmp_path / 'step_2.pth'} has other sizes, split or training config" in refusal(tmp_path)


def test_mixed_runs(tmp_path: Path) -> None:
    for seed in (0, 1):
        save_checkpoint(tmp_path / f"step_{seed}.safetensors", small_parameters(seed), small_config(seed), seed)
    assert f"{tmp_path / 'step_1.safetensors'} has other sizes, split or training config" in refusal(tmp_path)


def test_one_bad_file_of_a_folder_is_named(tmp_path: Path) -> None:
    foreign(tmp_path / "step_1.pth")
    (tmp_path / "step_2.pth").write_bytes(b"")
    assert f"{tmp_path / 'step_2.pth'}: the file is empty" in refusal(tmp_path)
