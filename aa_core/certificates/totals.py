"""Chunks in order, added up in memory that does not grow with the domain but for a line a chunk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aa_core.certificates.chunk import Chunk, Count, Failure


@dataclass(frozen=True)
class ChunkLine:
    """What is kept of a chunk.

    Attributes:
        sha256: of its tokens.
        errors: how many of its sequences are answered wrong.
        least_margin: in logits.
    """

    sha256: str
    errors: int
    least_margin: float


@dataclass(frozen=True)
class Totals:
    """The verdict on a domain.

    Attributes:
        size: number of sequences.
        sha256: of the chunks' hashes, in hexadecimal, one a line.
        errors: how many are answered wrong.
        failures: the first of those, up to the limit.
        least_margin: in logits.
        least_index: index of the first sequence with it.
        counts: by division and label; divisions with a single label are left out.
        chunks: a line each.
    """

    size: int
    sha256: str
    errors: int
    failures: tuple[Failure, ...]
    least_margin: float
    least_index: int
    counts: Mapping[str, Mapping[str, Count]]
    chunks: tuple[ChunkLine, ...]


def totals_of(chunks: Iterable[Chunk], limit: int) -> Totals:
    """Add up all chunks of a domain, given in order; at least one.

    Args:
        chunks: without a gap between them.
        limit: most failures to keep.
    """
    size = errors = 0
    failures: list[Failure] = []
    least: tuple[float, int] | None = None
    counts: dict[str, dict[str, Count]] = {}
    lines: list[ChunkLine] = []
    for chunk in chunks:
        size += chunk.stop - chunk.start
        errors += chunk.errors
        failures += chunk.failures[: limit - len(failures)]
        here = (chunk.least_margin, chunk.least_index)
        least = here if least is None else min(least, here)
        for name, labels in chunk.counts.items():
            axis = counts.setdefault(name, {})
            for label, count in labels.items():
                before = axis.get(label, Count(0, 0))
                axis[label] = Count(before.size + count.size, before.errors + count.errors)
        lines.append(ChunkLine(chunk.sha256, chunk.errors, chunk.least_margin))
    if least is None:
        raise ValueError("no chunk")
    return Totals(
        size=size,
        sha256=domain_sha256(line.sha256 for line in lines),
        errors=errors,
        failures=tuple(failures),
        least_margin=least[0],
        least_index=least[1],
        counts={name: labels for name, labels in counts.items() if len(labels) > 1},
        chunks=tuple(lines),
    )


def domain_sha256(digests: Iterable[str]) -> str:
    """Hash of a domain from the hashes of its chunks."""
    return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()
