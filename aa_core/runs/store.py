"""Training a run once: found if finished, resumed if killed, set aside and trained again if damaged."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import filelock
import platformdirs
import torch

from aa_core.checkpoints import save_checkpoint
from aa_core.errors import InputError
from aa_core.files import write_atomically
from aa_core.runs.entry import (
    MANIFEST,
    STATE,
    DamagedRunError,
    Manifest,
    Run,
    checkpoint_name,
    file_names,
    file_record,
    finished_run,
)
from aa_core.runs.environment import torch_threads, usable_device, versions
from aa_core.runs.key import run_key, run_name
from aa_core.runs.unfinished import save_progress, started_or_resumed
from aa_core.training.codehash import training_code_hash
from aa_core.training.config import TrainConfig
from aa_core.training.loop import Measure, train

ASIDE = ".damaged-"


class Progress(Protocol):
    """Something to show how far a run in training is."""

    def __call__(self, step: int, total: int, row: Mapping[str, float], /) -> None:
        """Called with every row of metrics, in order of `step`, of `total` steps."""


def default_root() -> Path:
    """The cache folder: `AA_CACHE` where that is set, else the user's cache folder of this platform."""
    return Path(os.environ.get("AA_CACHE") or platformdirs.user_cache_dir("assign-and-add")).expanduser()


@dataclass(frozen=True)
class RunStore:
    """Runs on disk, each in the folder `runs/RECIPE-seedSEED-KEY` of the root, where KEY is a hash of the run's
    config and of the code that trains it.

    Attributes:
        measure_for: what to measure in each row of metrics of a run, as a function of its weights.
        root: the cache folder.
        notify: told, in one line each, of damaged runs, of runs that another version of PyTorch trained, and of
            waiting for another process.
        save_every: fewest steps between two saves of a run in training; a run that is killed loses that many and
            those of a row, and none of its exactness.
    """

    measure_for: Callable[[TrainConfig], Measure]
    root: Path = field(default_factory=default_root)
    notify: Callable[[str], None] = logging.getLogger("aa_core.runs").warning
    save_every: int = 500

    def run(
        self, config: TrainConfig, *, device: str = "cpu", threads: int = 1, progress: Progress | None = None
    ) -> Run:
        """Find a run, or train it, going on from where an earlier process stopped.

        Processes that ask for the same run at the same time train it once. On the CPU the result is the same to the
        bit however often training was interrupted; it does depend on the machine and on `threads`.

        Args:
            config: the run.
            device: `cpu`, `cuda` or `cuda:N`.
            threads: PyTorch's threads during training.
            progress: told of every row.

        Raises:
            InputError: training diverged, the device is not there, or the cache folder cannot be used or is full;
                what was saved stays, and the next call goes on from it.
        """
        folder = self._folder(config)
        place = usable_device(device)
        if (run := self._finished(folder)) is not None:
            before = run.manifest.versions.get("torch")
            if before != torch.__version__:
                self.notify(
                    f"{folder} was trained with torch {before}, this is {torch.__version__}: remove it to train anew"
                )
            return run
        with self._lock(folder), torch_threads(threads):
            try:
                if (run := finished_run(folder)) is None:
                    return self._train(folder, config, place, progress)
            except DamagedRunError as error:
                self._set_aside(folder, error)
                return self._train(folder, config, place, progress)
            return run

    def find(self, config: TrainConfig) -> Run | None:
        """A finished run, every file checked against its manifest, or None where there is none.

        Raises:
            InputError: a file cannot be read.
        """
        return self._finished(self._folder(config), self.notify)

    def runs(self) -> list[Run]:
        """Every finished run of the store, whatever code trained it, checked, in order of name.

        Raises:
            InputError: a file cannot be read.
        """
        folders = sorted(folder for folder in self.root.glob("runs/*") if ASIDE not in folder.name)
        return [run for folder in folders if (run := self._finished(folder, self.notify)) is not None]

    def _folder(self, config: TrainConfig) -> Path:
        return self.root / "runs" / run_name(config, training_code_hash())

    def _finished(self, folder: Path, notify: Callable[[str], None] = lambda message: None) -> Run | None:
        try:
            return finished_run(folder)
        except DamagedRunError as error:
            notify(f"{folder} is damaged: {error}")
            return None

    @contextmanager
    def _lock(self, folder: Path) -> Iterator[None]:
        """Hold the run's lock, which the operating system frees when its holder dies."""
        lock = filelock.FileLock(folder.with_name(f"{folder.name}.lock"))
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                self.notify(f"waiting for another process that trains {folder.name}")
                lock.acquire()
        except OSError as error:
            raise InputError(
                f"cannot use the cache folder {self.root}: {error.strerror or error}; "
                "name another with the environment variable AA_CACHE"
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _set_aside(self, folder: Path, error: DamagedRunError) -> None:
        names = (folder.with_name(f"{folder.name}{ASIDE}{n}") for n in itertools.count(1))
        aside = next(name for name in names if not name.exists())
        try:
            folder.rename(aside)
        except OSError as problem:
            raise InputError(f"cannot move {folder} aside: {problem.strerror or problem}") from problem
        self.notify(f"{folder} was damaged: {error}; moved it to {aside.name}, training again")

    def _train(self, folder: Path, config: TrainConfig, device: torch.device, progress: Progress | None) -> Run:
        run = started_or_resumed(folder, config, device)
        started, saved = time.perf_counter() - run.seconds, run.state.step
        for milestone in train(config, run.state, self.measure_for(config)):
            if config.keeps_checkpoint(milestone.step):
                weights = {name: weight.detach().cpu() for name, weight in run.state.parameters.items()}
                save_checkpoint(folder / checkpoint_name(milestone.step), weights, config, milestone.step)
            if milestone.row is None:
                continue
            run.rows.append(milestone.row)
            if milestone.step - saved >= self.save_every or milestone.step == config.steps:
                run.seconds, saved = time.perf_counter() - started, milestone.step
                save_progress(folder, run)
            if progress is not None:
                progress(milestone.step, config.steps, milestone.row)
        code = training_code_hash()
        manifest = Manifest(
            key=run_key(config, code),
            config=config,
            code=code,
            files={name: file_record(folder / name) for name in file_names(config)},
            versions=versions(),
            device=str(device),
            threads=torch.get_num_threads(),
            seconds=round(run.seconds, 3),
        )
        write_atomically(folder / MANIFEST, manifest.json())
        (folder / STATE).unlink(missing_ok=True)
        return Run(folder, manifest)
