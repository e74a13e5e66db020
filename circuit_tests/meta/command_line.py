"""The commands, called as a user would."""

from __future__ import annotations

from pathlib import Path

import pytest

from aa_core.cli.main import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one line that a command line is refused with."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:  # argparse
        code = stop.code
    output = capsys.readouterr()
    assert code == 2, f"exit code {code}, printed {output.out} {output.err}"
    assert output.out == "", "a refusal prints nothing on standard output"
    assert output.err.count("\n") == 1, f"expected one line, got {output.err!r}"
    assert output.err.startswith("aa")
    return output.err
