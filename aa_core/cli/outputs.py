"""Where commands may write: not over what they read, nor over anything that is not a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from aa_core.errors import InputError
from aa_core.files import check_writable

ENDINGS = {
    "--json": (".json",),
    "--output": (".json",),
    "--html": (".html", ".htm"),
    "--markdown": (".md",),
    "--csv": (".csv",),
    "--junit": (".xml",),
    "the figure": (".svg",),
}
OF_A_RUN = ("config.json", "manifest.json")


def check_outputs(
    outputs: Mapping[str, Path | None],
    inputs: Mapping[str, Path | None] | None = None,
    figures: Iterable[Path] = (),
) -> None:
    """Refuse, before the work, outputs that would overwrite an input, each other, or a file that is no report.

    Args:
        outputs: by option, where a command is to write.
        inputs: by option, what it reads.
        figures: where it is to write figures.

    Raises:
        InputError: they would, or cannot be written where they should.
    """
    taken = {path.resolve(): f"what {option} reads" for option, path in (inputs or {}).items() if path is not None}
    for option, path in [*outputs.items(), *(("the figure", path) for path in figures)]:
        if path is None:
            continue
        if path.resolve() in taken:
            raise InputError(f"{option} {path} is {taken[path.resolve()]}: choose another place")
        check_writable(path)
        if path.exists() and (path.suffix.lower() not in ENDINGS[option] or path.name in OF_A_RUN):
            endings = " or ".join(ENDINGS[option])
            raise InputError(f"{option} {path}: it is there, and replaced would only be a report ({endings}); "
                             "choose another place or remove it")  # fmt: skip
        taken[path.resolve()] = f"what {option} writes"
