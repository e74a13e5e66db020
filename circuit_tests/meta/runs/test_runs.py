"""The run store: what it finds, what it resumes, and what it refuses."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from aa_core.checkpoints import load_checkpoint
from aa_core.errors import InputError
from aa_core.runs import Run, RunStore, default_root, store
from aa_core.runs.key import run_key, run_name
from aa_core.training.codehash import training_code_hash
from aa_core.training.config import TrainConfig
from aa_core.training.optimisation import advance, initial_state
from aa_core.training.recipes import RECIPES
from circuit_tests.meta.tiny import TINY, StoppedError, contents, stop_at, tiny_store, unfinished, weight_norms

# What a run leaves


def test_a_run_leaves_checkpoints_and_rows_of_its_own_training(reference: Run):
    assert list(reference.checkpoint_paths) == [0, 4, 8, 12, 16, 20, 30, 40, 47]
    state = initial_state(TINY, torch.device("cpu"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    for step, path in reference.checkpoint_paths.items():
        advance(state, TINY, load_checkpoint(path).split, step)
        checkpoint = load_checkpoint(path)
        assert (checkpoint.step, checkpoint.config) == (step, TINY)
        for name, weight in checkpoint.parameters.items():
            assert torch.equal(weight, state.parameters[name]), f"{name} at step {step}"
    torch.set_num_threads(before)
    rows = reference.metrics()
    assert [row["step"] for row in rows] == [5, 10, 15, 20, 25, 30, 35, 40, 45, 47]
    final = weight_norms(load_checkpoint(reference.final_path).parameters)
    assert {name: rows[-1][name] for name in final} == final


def test_a_finished_folder_holds_these_files_alone(reference: Run):
    names = {"config.json", "metrics.jsonl", *(f"checkpoints/{p.name}" for p in reference.checkpoint_paths.values())}
    assert contents(reference).keys() == names
    assert reference.manifest.files.keys() == names
    assert "checkpoints/step_000047.safetensors" in names
    assert reference.folder.name == f"custom-seed0-{reference.manifest.key}"


def test_the_manifest_says_how_the_run_was_made(reference: Run):
    manifest = reference.manifest
    assert (manifest.config, manifest.device, manifest.threads) == (TINY, "cpu", 1)
    assert manifest.code == training_code_hash()
    assert manifest.versions["torch"] == torch.__version__
    assert manifest.seconds > 0


def test_a_finished_run_is_found_and_not_trained_again(reference: Run):
    store = tiny_store(reference.folder.parents[1])
    assert store.run(TINY, progress=stop_at(5)) == reference
    assert store.find(TINY) == reference
    assert store.runs() == [reference]
    assert store.find(dataclasses.replace(TINY, seed=1)) is None


def test_a_run_that_another_pytorch_trained_is_found_and_said(reference: Run, monkeypatch: pytest.MonkeyPatch):
    messages: list[str] = []
    store = RunStore(lambda config: weight_norms, reference.folder.parents[1], messages.append)
    assert store.run(TINY) == reference
    assert not messages
    monkeypatch.setattr(torch, "__version__", "0.1")
    assert store.run(TINY) == reference
    [message] = messages
    assert f"{reference.folder} was trained with torch {reference.manifest.versions['torch']}, this is 0.1" in message


def test_a_cache_that_may_not_be_entered_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refused(path: Path, **options: object) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refused)
    with pytest.raises(InputError, match=r"cannot use the cache folder at .*Permission denied.*AA_CACHE"):
        tiny_store(tmp_path).find(TINY)


def test_progress_is_told_of_every_row(tmp_path: Path, reference: Run):
    told: list[Any] = []
    tiny_store(tmp_path).run(TINY, progress=lambda step, total, row: told.append((step, total, dict(row))))
    assert told == [(row["step"], 47, row) for row in reference.metrics()]


# Keys


OTHER_VALUES = {
    "max_assignments": 5,
    "train_fraction": 0.5,
    "never_left": "a",
    "never_right": "b",
    "beta1": 0.5,
    "beta2": 0.5,
    "precision": "bfloat16",
    "checkpoint_every": (),
}


def one_field_changed(config: Any) -> dict[str, Any]:
    """By the path of each field, however deep: a copy in which that field alone has another value."""
    copies = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            inner = {f"{field.name}.{path}": copy for path, copy in one_field_changed(value).items()}
        else:
            inner = {field.name: OTHER_VALUES[field.name] if field.name in OTHER_VALUES else value + 1}
        copies |= {path: dataclasses.replace(config, **{field.name: other}) for path, other in inner.items()}
    return copies


@pytest.mark.parametrize("path", one_field_changed(TrainConfig()))
def test_every_field_of_the_config_is_in_the_key(path: str):
    other = one_field_changed(TrainConfig())[path]
    assert other != TrainConfig()
    assert run_key(other, "code") != run_key(TrainConfig(), "code")


def test_equal_configs_have_equal_keys():
    whole, real = (dataclasses.replace(TINY, learning_rate=rate) for rate in (1, 1.0))
    assert run_key(whole, "code") == run_key(real, "code")


def test_names_start_with_the_recipe_and_the_seed():
    config = dataclasses.replace(RECIPES["fast"], seed=3)
    assert run_name(config, "code") == f"fast-seed3-{run_key(config, 'code')}"


def test_a_change_of_the_training_code_trains_again(reference: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "training_code_hash", lambda: "0" * 64)
    other_code = tiny_store(reference.folder.parents[1])
    assert other_code.find(TINY) is None
    assert other_code.runs() == [reference], "a list of runs has those of other code too"


def test_the_root_is_the_variables_or_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("AA_CACHE", str(tmp_path))
    assert RunStore(lambda config: weight_norms).root == tmp_path
    for unset in (lambda: monkeypatch.setenv("AA_CACHE", ""), lambda: monkeypatch.delenv("AA_CACHE")):
        unset()
        assert "assign-and-add" in str(default_root())


# Interruption


@pytest.mark.parametrize("error", [StoppedError, KeyboardInterrupt])
def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path: Path, reference: Run, error: type[BaseException]):
    threads = torch.get_num_threads()
    for step in (5, 15, 35, 47):  # before the first save, between saves, at a save, at the last row
        with pytest.raises(error):
            tiny_store(tmp_path).run(TINY, progress=stop_at(step, error))
        assert tiny_store(tmp_path).find(TINY) is None, "an unfinished run is not to be found"
        assert torch.get_num_threads() == threads, "the number of threads is left changed"
    steps: list[int] = []
    run = tiny_store(tmp_path).run(TINY, progress=lambda step, total, row: steps.append(step))
    assert steps == [], "after its last save nothing of a run is left to train"
    assert contents(run) == contents(reference)
    assert run.manifest.files == reference.manifest.files


def test_a_resumed_run_starts_at_the_last_save(tmp_path: Path):
    with pytest.raises(StoppedError):
        tiny_store(tmp_path).run(TINY, progress=stop_at(35))
    steps: list[int] = []
    tiny_store(tmp_path).run(TINY, progress=lambda step, total, row: steps.append(step))
    assert steps == [35, 40, 45, 47], "saves are at 10, 20 and 30"


def test_the_time_of_training_adds_up_over_interruptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clock = itertools.count()
    monkeypatch.setattr(store, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    with pytest.raises(StoppedError):
        tiny_store(tmp_path).run(TINY, progress=stop_at(25))
    saves_before, saves_after = 2, 3  # the clock ticks once at the start and once a save
    assert tiny_store(tmp_path).run(TINY).manifest.seconds == saves_before + saves_after


def test_leftovers_of_a_killed_write_are_removed(tmp_path: Path, reference: Run):
    folder = unfinished(tmp_path)
    for name in (".state.safetensors.x1.tmp", "checkpoints/.step_000012.safetensors.y2.tmp"):
        (folder / name).write_bytes(b"half")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 35, "lo')
    assert contents(tiny_store(tmp_path).run(TINY)) == contents(reference)


def test_a_checkpoint_that_a_killed_process_was_ahead_with_is_made_again(tmp_path: Path, reference: Run):
    folder = unfinished(tmp_path)
    (folder / "checkpoints/step_000040.safetensors").write_bytes(b"ahead of the state")
    assert contents(tiny_store(tmp_path).run(TINY)) == contents(reference)


# Places and options that cannot be used


@pytest.mark.parametrize("place", ["root", "runs", "run"])
def test_a_file_where_a_folder_should_be_is_an_error_in_one_line(tmp_path: Path, place: str):
    root = tmp_path / "cache"
    path = {"root": root, "runs": root / "runs", "run": root / "runs" / run_name(TINY, training_code_hash())}[place]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"in the way")
    assert tiny_store(root).find(TINY) is None
    assert tiny_store(root).runs() == []
    with pytest.raises(InputError, match=str(root)) as caught:
        tiny_store(root).run(TINY)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == b"in the way"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"device": "nonsense"}, "device is 'nonsense', expected cpu, cuda or cuda:N"),
        ({"device": "cuda:99"}, "device cuda:99 is not available"),
        ({"device": "meta"}, "device meta is not available"),
        ({"threads": 0}, "threads is 0, expected at least 1"),
    ],
)
def test_options_out_of_range_are_refused(tmp_path: Path, options: dict[str, Any], says: str):
    with pytest.raises(InputError, match=says):
        tiny_store(tmp_path).run(TINY, **options)


def test_a_diverged_run_says_so_every_time(tmp_path: Path):
    for _ in range(2):
        with pytest.raises(InputError, match=r"^training diverged"):
            tiny_store(tmp_path).run(dataclasses.replace(TINY, learning_rate=1e30))
    assert tiny_store(tmp_path).runs() == []
