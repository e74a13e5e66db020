"""Progress bars on standard error, absent where that is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


def _bars() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def training_bar(title: str, steps: int) -> Iterator[Callable[[int, int, Mapping[str, float]], None]]:
    """A bar over training steps with the loss and accuracies beside it; one line at the start without a terminal."""
    with _bars() as bars:
        task = bars.add_task(title, total=steps, status="")

        told = not bars.disable

        def update(step: int, total: int, row: Mapping[str, float]) -> None:
            nonlocal told
            if not told:
                bars.console.print(f"aa: {title}: training, at step {step} of {total}", highlight=False)
                told = True
            status = (
                f"loss {row['loss']:.3f}  0-var {row['full-prefix/0-var']:.2f}  1L {row['full-prefix/1L']:.2f}  "
                f"1R {row['full-prefix/1R']:.2f}  2-var {row['full-prefix/2-var']:.2f}"
            )
            bars.update(task, completed=step, total=total, status=status)

        yield update


def bar(items: Iterable[T], total: int, title: str) -> Iterator[T]:
    """Iterate under a bar."""
    with _bars() as bars:
        task = bars.add_task(title, total=total, status="")
        for item in items:
            yield item
            bars.advance(task)


@contextmanager
def counted_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told how many of how many are done."""
    with _bars() as bars:
        task = bars.add_task(title, total=None, status="")
        yield lambda done, total: bars.update(task, completed=done, total=total)
