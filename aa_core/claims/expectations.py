"""A file of claims that are known to fail, or not to be judged, for some models, each with its reason."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from aa_core.errors import InputError
from aa_core.files import read_bytes

MODEL = re.compile(r"fixture|checkpoint|seed[0-9*?\[\]-]+")
"""Names of models, and patterns of such names."""


def _one_line(text: object) -> object:
    return " ".join(text.split()) if isinstance(text, str) else text


class Expectation(BaseModel):
    """One entry of the file.

    Attributes:
        claim: id of a claim, or a glob pattern of ids.
        model: name of a model (`fixture`, `checkpoint`, `seed3`), or a glob pattern.
        expect: `fails`: failing or undecided is as expected, holding is an error; `skip`: not judged.
        reason: why.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str
    model: str = "*"
    expect: Literal["fails", "skip"] = "fails"
    reason: Annotated[str, BeforeValidator(_one_line), Field(min_length=1)]

    def covers(self, claim: str, model: str) -> bool:
        """Whether this entry is about a claim judged on a model."""
        return fnmatchcase(claim, self.claim) and fnmatchcase(model, self.model)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    expectation: list[Expectation]


@dataclass(frozen=True)
class Expectations:
    """The entries of a file, in order; the first that covers a claim and a model counts."""

    entries: Sequence[Expectation] = ()

    def find(self, claim: str, model: str) -> Expectation | None:
        """The entry for a claim judged on a model, None without one."""
        return next((entry for entry in self.entries if entry.covers(claim, model)), None)

    def unmatched(self, judged: Iterable[tuple[str, str]]) -> list[Expectation]:
        """Entries that cover none of the given (claim, model), unless for a model that could be judged another time."""
        judged = list(judged)
        claims = {claim for claim, _ in judged}

        def is_stale(entry: Expectation) -> bool:
            if any(entry.covers(claim, model) for claim, model in judged):
                return False
            return not (MODEL.fullmatch(entry.model) and any(fnmatchcase(claim, entry.claim) for claim in claims))

        return [entry for entry in self.entries if is_stale(entry)]


def load_expectations(path: Path | None) -> Expectations:
    """Read a file such as

        [[expectation]]
        claim = "refinement/*"
        model = "seed1"
        reason = "stuck: its variables collapsed"

    None gives no expectations.

    Raises:
        InputError: the file cannot be read or is not of this form.
    """
    if path is None:
        return Expectations()
    try:
        content = tomllib.loads(read_bytes(path).decode())
    except (ValueError, RecursionError) as error:  # of tomllib, of decoding, of absurd numbers and nesting
        raise InputError(f"{path} is not a TOML file: {error}") from error
    try:
        return Expectations(tuple(_File.model_validate(content).expectation))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{path}: {where}: {first['msg']}; expected [[expectation]] tables with claim, model, expect and reason"
        ) from error
