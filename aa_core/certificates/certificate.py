"""What a certificate says, and its file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from aa_core.certificates.chunk import Count
from aa_core.certificates.totals import ChunkLine
from aa_core.errors import InputError
from aa_core.files import read_bytes
from aa_core.task.config import TaskConfig
from aa_core.task.split import SplitConfig

FORMAT = "assign-and-add certificate 1"
SEALS = "seals"


@dataclasses.dataclass(frozen=True)
class ListedFailure:
    """A sequence that is answered wrong.

    Attributes:
        index: its number in the domain.
        problem: its text, which `aa ask` reads.
        right: the right answer.
        answer: what the model answers.
        margin: logit of the right answer minus the largest other, at most 0.
    """

    index: int
    problem: str
    right: int
    answer: int
    margin: float


@dataclasses.dataclass(frozen=True)
class Least:
    """The sequence with the least margin."""

    index: int
    problem: str


@with_config(ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))  # holds for the records inside too
@dataclasses.dataclass(frozen=True)
class Certificate:
    """The verdict on every sequence of a domain.

    Attributes:
        format: name and version of the format.
        claim: what was found, in words.
        domain: name of the domain.
        parameters: what else defines it.
        task: sizes of the task.
        split: what training was allowed to see.
        weights_sha256: of the model, see `aa_core.checkpoints.weights_sha256`.
        code_sha256: of the modules that enumerate and judge.
        domain_sha256: of all tokens in order, see `Totals.sha256`.
        size: number of sequences.
        errors: how many are answered wrong.
        least_margin: logit of the right answer minus the largest other, the least of all.
        least: a sequence that has it.
        counts: sizes and errors by division and label.
        failure_limit: most failures that are listed.
        failures: the first sequences answered wrong.
        chunk_size: sequences a chunk; the last may have fewer.
        chunks: a line each.
        versions: of what computed it.
        device: where it was computed.
        jobs: processes.
        seconds: wall-clock time, of all processes that took part one after another.
        process_mib: peak resident memory, in MiB, of the largest of those processes.
    """

    format: Literal["assign-and-add certificate 1"]
    claim: str
    domain: str
    parameters: Mapping[str, str]
    task: TaskConfig
    split: SplitConfig
    weights_sha256: str
    code_sha256: str
    domain_sha256: str
    size: int
    errors: int
    least_margin: float
    least: Least
    counts: Mapping[str, Mapping[str, Count]]
    failure_limit: int
    failures: tuple[ListedFailure, ...]
    chunk_size: int
    chunks: tuple[ChunkLine, ...]
    versions: Mapping[str, str]
    device: str
    jobs: int
    seconds: float
    process_mib: float

    @property
    def seals(self) -> dict[str, str]:
        """A hash of each field, 16 hexadecimal digits.

        They name a field that was changed by accident or without care. Whoever changes a field on purpose can renew
        its seal: against that there is only the check from the weights.
        """
        return {name: _seal(value) for name, value in dataclasses.asdict(self).items()}

    def json(self) -> bytes:
        """Content of the file: a line for each record of the long lists."""
        fields = {**dataclasses.asdict(self), SEALS: self.seals}
        return (
            "{\n" + ",\n".join(f"  {json.dumps(name)}: {_text(value)}" for name, value in fields.items()) + "\n}\n"
        ).encode()


_CERTIFICATE = TypeAdapter(Certificate)
_UNKNOWN = "unexpected_keyword_argument"


@dataclasses.dataclass(frozen=True)
class CertificateFile:
    """What a certificate's file holds.

    Attributes:
        certificate: the certificate.
        seals: as the file has them.
        unknown: names of fields that no certificate has.
    """

    certificate: Certificate
    seals: Mapping[str, Any]
    unknown: tuple[str, ...] = ()


def read_certificate(path: Path) -> CertificateFile:
    """A certificate and what its file holds besides.

    Raises:
        InputError: the file cannot be read or is no certificate of this version.
    """
    try:
        fields = json.loads(read_bytes(path))
        if not isinstance(fields, dict):
            raise ValueError("expected an object")
        seals = fields.pop(SEALS, None)
        certificate, unknown = _known(fields)
        if not isinstance(seals, dict):
            raise ValueError(f"{SEALS}: expected an object")
    except ValidationError as error:
        errors = error.errors()
        first = next((entry for entry in errors if entry["type"] != _UNKNOWN), errors[0])
        key = ".".join(map(str, first["loc"])) or "the whole"
        raise InputError(f"{path} is no certificate: {key}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no certificate: {str(error).splitlines()[0]}") from error
    return CertificateFile(certificate, seals, unknown)


def _known(fields: dict[str, Any]) -> tuple[Certificate, tuple[str, ...]]:
    """The certificate, and the names of fields that it has not, where all the others are right."""
    try:
        return _CERTIFICATE.validate_json(json.dumps(fields)), ()
    except ValidationError as error:
        errors = error.errors()
        if any(entry["type"] != _UNKNOWN for entry in errors):
            raise
    for entry in errors:
        record: Any = fields
        *way, name = entry["loc"]
        for key in way:
            record = record[key]
        del record[name]
    return _CERTIFICATE.validate_json(json.dumps(fields)), tuple(".".join(map(str, e["loc"])) for e in errors)


def _seal(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _text(value: Any) -> str:
    """JSON with a line for each entry of a list, or of a mapping of mappings."""
    if isinstance(value, tuple) and value:
        return "[\n" + ",\n".join(f"    {json.dumps(entry)}" for entry in value) + "\n  ]"
    return json.dumps(value)
