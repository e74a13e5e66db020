"""Runs whose process is killed, has to wait, or finds the disk full: real processes, forked from a clean server."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from aa_core.errors import InputError
from aa_core.runs import Run, RunStore
from circuit_tests.meta.tiny import TINY, contents, tiny_store, weight_norms

PATIENCE = 60  # seconds until a process that hangs fails its test
WRITES = range(1, 22)  # config, manifest, 9 checkpoints, 6 states (of step 0 too) and 5 times metrics make 22 writes


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Starts processes by forking one that has imported everything and runs no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch._dynamo", __name__])  # the first is what PyTorch's optimisers import late
    return context


def exit_code(process: ForkServerProcess) -> int | None:
    """How a process ended, after waiting for it."""
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
    return process.exitcode


def kill_at_write(root: Path, write: int, replaced: bool) -> None:
    """Train, and die in the middle of a write: with the temporary file whole, or just after it took its place."""
    counter = itertools.count(1)
    replace = os.replace

    def replace_or_die(source: str, target: Path) -> None:
        is_last = next(counter) == write
        if not is_last or replaced:
            replace(source, target)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replace_or_die  # pyright: ignore[reportAttributeAccessIssue]
    tiny_store(root).run(TINY)


def kill_at_row(root: Path, step: int) -> None:
    def progress(reached: int, total: int, row: object) -> None:
        if reached == step:
            os.kill(os.getpid(), signal.SIGKILL)

    tiny_store(root).run(TINY, progress=progress)


def test_the_run_makes_as_many_writes_as_the_tests_assume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names: list[str] = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda source, target: (names.append(target.name), replace(source, target)))
    tiny_store(tmp_path).run(TINY)
    assert len(names) == WRITES.stop, names
    assert names[-1] == "manifest.json"


@pytest.mark.parametrize("write", [*sorted(random.Random(0).sample(WRITES, 4)), WRITES.stop])
@pytest.mark.parametrize("replaced", [False, True], ids=["in the write", "after it"])
def test_a_run_killed_at_a_write_ends_with_the_same_bits(
    processes: ForkServerContext, tmp_path: Path, reference: Run, write: int, replaced: bool
):
    process = processes.Process(target=kill_at_write, args=(tmp_path, write, replaced))
    process.start()
    assert exit_code(process) == -signal.SIGKILL, "the process was to die of its own hand"
    assert bool(list(tmp_path.rglob(".*.tmp"))) != replaced, "the kill was to hit between write and replace"
    run = tiny_store(tmp_path).run(TINY)
    left = contents(run)
    if replaced and write == WRITES.stop:  # finished, but for the state that nobody needs any more
        del left["state.safetensors"]
    assert left == contents(reference)
    assert run.manifest.files == reference.manifest.files


def test_a_run_killed_again_and_again_ends_with_the_same_bits(
    processes: ForkServerContext, tmp_path: Path, reference: Run
):
    for step in sorted(random.Random(1).sample(range(5, 46, 5), 4)):
        process = processes.Process(target=kill_at_row, args=(tmp_path, step))
        process.start()
        assert exit_code(process) == -signal.SIGKILL, f"not killed at step {step}"
    run = tiny_store(tmp_path).run(TINY)
    assert contents(run) == contents(reference)
    assert run.manifest.files == reference.manifest.files


# Two processes


def train_until_told(root: Path, started: Event, go_on: Event, trained: Connection) -> None:
    def progress(step: int, total: int, row: object) -> None:
        started.set()
        assert go_on.wait(PATIENCE)

    trained.send(tiny_store(root).run(TINY, progress=progress))


def train_and_tell(root: Path, waits: Event, trained: Connection) -> None:
    rows: list[int] = []
    messages: list[str] = []

    def notify(message: str) -> None:
        messages.append(message)
        waits.set()

    store = RunStore(lambda config: weight_norms, root, notify)
    run = store.run(TINY, progress=lambda step, total, row: rows.append(step))
    trained.send((run, rows, messages))


def test_two_processes_that_want_the_same_run_train_it_once(processes: ForkServerContext, tmp_path: Path):
    started, waits = processes.Event(), processes.Event()
    (first_end, first), (second_end, second) = processes.Pipe(), processes.Pipe()
    one = processes.Process(target=train_until_told, args=(tmp_path, started, waits, first))
    two = processes.Process(target=train_and_tell, args=(tmp_path, waits, second))
    one.start()
    assert started.wait(PATIENCE), "the first process does not train"
    two.start()
    assert [exit_code(one), exit_code(two)] == [0, 0]
    run, rows, messages = second_end.recv()
    assert run == first_end.recv(), "one of them got another run"
    assert rows == [], "the second process trained too"
    assert messages == [f"waiting for another process that trains {run.folder.name}"]


# A full disk


def train_within(root: Path, limit: int, answer: Connection) -> None:
    """Train where no file can be longer than `limit` bytes, and send what came of it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    answer.send(error_of(lambda: tiny_store(root).run(TINY)))


def error_of(action: Callable[[], object]) -> str:
    try:
        action()
    except InputError as error:
        return str(error)
    return "no error"


@pytest.mark.parametrize(
    ("limit", "file"),
    [(100, "config.json"), (1_500, "state.safetensors"), (100_000, "no error")],
)
def test_a_file_that_cannot_grow_is_an_error_in_one_line(
    processes: ForkServerContext, tmp_path: Path, reference: Run, limit: int, file: str
):
    end, answer = processes.Pipe()
    process = processes.Process(target=train_within, args=(tmp_path, limit, answer))
    process.start()
    assert exit_code(process) == 0
    error = end.recv()
    assert file in error
    assert "\n" not in error
    assert list(tmp_path.rglob(".*.tmp")) == [], "a half-written file is left"
    assert contents(tiny_store(tmp_path).run(TINY)) == contents(reference)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, with room for the start of a run."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root and the mount command")
    mounted = subprocess.run([mount, "-t", "tmpfs", "-o", "size=100k", "tmpfs", path], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", path], check=True)


def test_a_full_disk_is_an_error_in_one_line_and_more_room_lets_training_go_on(small_disk: Path, reference: Run):
    for _ in range(2):
        error = error_of(lambda: tiny_store(small_disk).run(TINY))
        assert "No space left on device" in error
        assert "\n" not in error
        assert list(small_disk.rglob(".*.tmp")) == [], "a half-written file is left"
    assert list(small_disk.rglob("step_*.safetensors")), "the disk was to fill up later"
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    assert contents(tiny_store(small_disk).run(TINY)) == contents(reference)
