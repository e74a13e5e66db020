"""What our checkpoints say about themselves, in a safetensors file's metadata."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from aa_core.errors import InputError
from aa_core.training.config import TrainConfig

FORMAT = "assign-and-add"
VERSION = 1


@with_config(ConfigDict(extra="forbid", strict=True))  # holds for the configs inside too
@dataclass(frozen=True)
class Header:
    """Attributes of our checkpoint files.

    Attributes:
        step: finished updates.
        recipe: name of the recipe when the file was written; for people, the config is what counts.
        config: the training run.
        sha256: hash of the weights.

    Raises:
        InputError: the step is negative.
    """

    step: int
    recipe: str
    config: TrainConfig
    sha256: str

    def __post_init__(self) -> None:
        if self.step < 0:
            raise InputError(f"step is {self.step}, expected at least 0")

    def metadata(self) -> dict[str, str]:
        """A single entry, since safetensors writes several in random order."""
        return {f"{FORMAT}/{VERSION}": json.dumps(dataclasses.asdict(self))}


_HEADER = TypeAdapter(Header)


def header_of(metadata: Mapping[str, str]) -> Header | None:
    """The header in a file's metadata, None if the file is not ours.

    Raises:
        InputError: the header is of another version, or does not describe a training run.
    """
    versions = [key.removeprefix(f"{FORMAT}/") for key in metadata if key.startswith(f"{FORMAT}/")]
    if not versions:
        return None
    if versions != [str(VERSION)]:
        raise InputError(
            f"written in version {', '.join(sorted(versions))} of the {FORMAT} format, this program reads version "
            f"{VERSION}; install a newer one"
        )
    try:
        return _HEADER.validate_json(metadata[f"{FORMAT}/{VERSION}"])
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "the whole"
        raise InputError(f"header: {key}: {first['msg']}; the file is damaged or was edited") from error
