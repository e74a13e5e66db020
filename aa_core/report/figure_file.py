"""A drawing of `aa_core.report.svg` as a file of its own, for Markdown pages, in light and dark."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from aa_core.files import write_atomically

NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
FONT = "svg { font-family: system-ui, sans-serif; background: var(--page) }"


def figure_folder(page: Path) -> Path:
    """Where the figures of a page are: `docs/seeds` for `docs/seeds.md`."""
    return page.parent / (page.stem if page.suffix else f"{page.name}-figures")


def write_figure(path: Path, drawing: str) -> None:
    """Write an `<svg>` element made by `panel` to a file, with the colours of pages.

    Raises:
        InputError: the file cannot be written.
    """
    style = files("aa_core.report").joinpath("page.css").read_text().split("\n* {")[0]  # the colours alone
    head, body = drawing.split(">", 1)
    svg = f"{head.replace('<svg', f'<svg {NAMESPACES}')}>\n<style>\n{style}{FONT}\n</style>{body}"
    write_atomically(path, svg.encode())
