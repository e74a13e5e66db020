"""A finished run on disk: its files, its manifest, and the check that nothing changed since."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from aa_core.errors import InputError
from aa_core.files import read_bytes
from aa_core.runs.key import config_json, run_key, run_name
from aa_core.training.config import TrainConfig
from aa_core.training.loop import Row

CONFIG = "config.json"
METRICS = "metrics.jsonl"
STATE = "state.safetensors"
MANIFEST = "manifest.json"
CHECKPOINTS = "checkpoints"


class DamagedRunError(InputError):
    """A run's folder does not hold what it should; the message says which file and how."""


@dataclass(frozen=True)
class FileRecord:
    """Size in bytes and SHA-256, in hexadecimal, of a file."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` says; it is written last, so a folder that has one is finished.

    Attributes:
        key: of the run, see `run_key`.
        config: the run's config.
        code: hash of the code that trained it.
        files: record of every other file, by its path within the folder.
        versions: of python, torch, numpy and the platform.
        device: where it was trained.
        threads: PyTorch's threads while it was trained.
        seconds: wall-clock time of training, over all the processes that took part.
    """

    key: str
    config: TrainConfig
    code: str
    files: Mapping[str, FileRecord]
    versions: Mapping[str, str]
    device: str
    threads: int
    seconds: float

    def json(self) -> bytes:
        """Content of the file."""
        return (json.dumps(dataclasses.asdict(self), indent=2) + "\n").encode()


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: where its files are.
        manifest: what is known of it.
    """

    folder: Path
    manifest: Manifest

    @property
    def config(self) -> TrainConfig:
        """The run's config."""
        return self.manifest.config

    @property
    def checkpoint_paths(self) -> dict[int, Path]:
        """Checkpoint files by step, in order."""
        return {step: self.folder / checkpoint_name(step) for step in checkpoint_steps(self.config)}

    @property
    def final_path(self) -> Path:
        """The checkpoint after the last step."""
        return self.folder / checkpoint_name(self.config.steps)

    def metrics(self) -> list[Row]:
        """Rows of metrics in order of `step`."""
        return [json.loads(line) for line in read_bytes(self.folder / METRICS).splitlines()]


def checkpoint_name(step: int) -> str:
    """Path of a checkpoint within a run's folder."""
    return f"{CHECKPOINTS}/step_{step:06d}.safetensors"


def checkpoint_steps(config: TrainConfig) -> list[int]:
    """Steps of the checkpoints that a finished run keeps."""
    return [step for step in range(config.steps + 1) if config.keeps_checkpoint(step)]


def file_names(config: TrainConfig) -> list[str]:
    """Paths, within its folder, of everything that a finished run has besides its manifest."""
    return [CONFIG, METRICS, *map(checkpoint_name, checkpoint_steps(config))]


def file_record(path: Path) -> FileRecord:
    """The record of a file as it is now."""
    data = read_bytes(path)
    return FileRecord(len(data), hashlib.sha256(data).hexdigest())


def finished_run(folder: Path) -> Run | None:
    """The run in a folder, every file checked against the manifest, or None where there is none or no manifest yet.

    Raises:
        DamagedRunError: a file is missing, altered or one too many, or the manifest is broken or of another run.
        InputError: a file cannot be read.
    """
    try:
        if not (folder / MANIFEST).exists():
            return None
    except OSError as error:
        raise InputError(
            f"cannot use the cache folder at {folder}: {error.strerror or error}; "
            "name another with --cache or the environment variable AA_CACHE"
        ) from error
    if not (folder / MANIFEST).is_file():
        raise DamagedRunError(f"{MANIFEST} is not a file")
    try:
        manifest = TypeAdapter(Manifest).validate_json(read_bytes(folder / MANIFEST))
    except ValidationError as error:
        raise DamagedRunError(f"{MANIFEST} is not a manifest ({error.errors()[0]['msg']})") from error
    key, name = run_key(manifest.config, manifest.code), run_name(manifest.config, manifest.code)
    if (manifest.key, folder.name) != (key, name):
        raise DamagedRunError(f"{MANIFEST} is of another run ({name})")
    check_config(folder, manifest.config)
    expected = set(file_names(manifest.config))
    checkpoints = {f"{CHECKPOINTS}/{path.name}" for path in folder.glob(f"{CHECKPOINTS}/*.safetensors")}
    for names, problem in (
        (expected.symmetric_difference(manifest.files), f"is missing from {MANIFEST} or one too many"),
        (checkpoints - expected, "should not be there"),
        ({name for name in expected if not (folder / name).is_file()}, "is missing"),
    ):
        if names:
            raise DamagedRunError(f"{min(names)} {problem}")
    for name, record in manifest.files.items():
        if file_record(folder / name) != record:
            raise DamagedRunError(f"{name} does not match {MANIFEST}")
    return Run(folder, manifest)


def check_config(folder: Path, config: TrainConfig) -> None:
    """Check that a run's folder is of the run with this config.

    Raises:
        DamagedRunError: `config.json` is missing or says something else.
    """
    path = folder / CONFIG
    if not path.is_file():
        raise DamagedRunError(f"{CONFIG} is missing")
    if read_bytes(path) != config_json(config).encode():
        raise DamagedRunError(f"{CONFIG} is not the config of this run")
