"""Entry point: parses, runs a command, and turns bad input into one line and exit code 2.

PyTorch is imported by the commands that need it, so that `aa --help` answers at once.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
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


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """The command-line parser; every command sets `run`, which takes the parsed options and returns an exit code."""
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
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Unicode shows ? for what it lacks
    try:
        options = parser().parse_args(arguments)
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
    except KeyboardInterrupt:
        print("aa: interrupted; run the same command again to go on", file=sys.stderr)
        return INTERRUPTED


def _drop_output() -> None:
    """Send what is still to be flushed into nothing, where it cannot fail a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
