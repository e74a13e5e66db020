"""Entry point: parses, runs a command, and turns bad input into one line and exit code 2.

PyTorch is imported by the commands that need it, so that `aa --help` answers at once.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from aa_core.cli import (
    ask,
    certify,
    claims,
    controls,
    fixture,
    gate,
    respread,
    results,
    search,
    seeds,
    sweep,
    train,
    verify,
)
from aa_core.errors import InputError

BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which a job manager sends: an interrupt, so that the workers of a sweep end with it."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        apart = "unrecognized arguments: " in message and not message.split(": ")[1].startswith("-")
        hint = ": arguments stand together, before or after the options" if apart else ""
        self.exit(BAD_INPUT, f"{self.prog}: error: {message}{hint} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """The command-line parser; every command sets `run`, which takes the parsed options and returns an exit code,
    and `goes_on` if the same command later takes up what was interrupted.
    """
    main_parser = _Parser(
        prog="aa",
        description="Train assign-and-add transformers and check the claims about their circuit.",
    )
    commands = main_parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (
        train,
        verify,
        ask,
        certify,
        claims,
        controls,
        results,
        fixture,
        gate,
        search,
        sweep,
        seeds,
        respread,
    ):
        command.add_parser(commands)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code."""
    goes_on = False
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Unicode shows ? for what it lacks
    try:
        options = parser().parse_args(arguments)
        goes_on = getattr(options, "goes_on", False)
        with _terminable():
            code = options.run(options)
        print(end="", flush=True)
        return code
    except InputError as error:
        print(f"aa: error: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EBADF, errno.EIO):
            raise
        print(f"aa: error: cannot write the output: {error.strerror}", file=sys.stderr)
        _drop_output()
        return BAD_INPUT
    except KeyboardInterrupt as stop:
        print(f"aa: interrupted{'; run the same command again to go on' if goes_on else ''}", file=sys.stderr)
        return TERMINATED if isinstance(stop, _Terminated) else INTERRUPTED


@contextmanager
def _terminable() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # no other may set a handler
        yield
        return

    def stop(number: int, frame: object) -> NoReturn:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _drop_output() -> None:
    """Send what is still to be flushed into nothing, where it cannot fail a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
