"""What commands write: whole or not at all, and never over what they read."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aa_core.cli.main import main
from aa_core.training.config import TrainConfig
from circuit_tests.meta.command_line import refused


def full_disk(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk(
    tiny_recipe: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "fsync", full_disk)
    message = refused(capsys, "train", "--seed", "0", "--recipe", "tiny", "--cache", tmp_path)
    assert "No space left" in message
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".tmp"], "a half-written file stays"


def test_full_disk_leaves_an_old_report_whole(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    report.write_text("old")
    monkeypatch.setattr(os, "fsync", full_disk)
    code = main(["verify", "--checkpoint", str(checkpoint), "--claims", "accuracy", "--json", str(report)])
    assert code == 2
    assert "No space left" in capsys.readouterr().err
    assert report.read_text() == "old"


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_report_does_not_overwrite_the_model(
    option: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = checkpoint.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(checkpoint)
    for output in (checkpoint, link):
        message = refused(capsys, "verify", "--checkpoint", checkpoint, option, output)
        assert f"{option} {output} is what --checkpoint reads" in message
    assert checkpoint.read_bytes() == before


def test_reports_do_not_overwrite_each_other(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report"
    assert "--html" in refused(capsys, "verify", "--checkpoint", checkpoint, "--json", report, "--html", report)


def test_the_fixture_replaces_nothing_but_a_fixture(
    tiny_recipe: TrainConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thesis = tmp_path / "work" / "thesis.tex"
    thesis.parent.mkdir()
    thesis.write_text("years")
    options = ["fixture", "--seed", "0", "--recipe", "tiny", "--cache", str(tmp_path / "cache"), "--output"]
    main([*options, str(tmp_path / "fresh")])
    capsys.readouterr()
    assert "is not a fixture" in refused(capsys, *options, thesis.parent)
    assert thesis.read_text() == "years"
    before = {path.name: path.read_bytes() for path in (tmp_path / "fresh").rglob("*") if path.is_file()}
    assert before
    assert main([*options, str(tmp_path / "fresh")]) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "fresh").rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "fresh", "work"], "something stays behind"


def run_command(command: str, checkpoint: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line in a shell, where `aa` is ours and `MODEL` the checkpoint."""
    script = f'aa() {{ {sys.executable} -m aa_core.cli.main "$@"; }}; {command}'
    variables = {**os.environ, "MODEL": str(checkpoint), **environment}
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=variables, timeout=100, check=False
    )


@pytest.mark.slow
def test_output_that_cannot_be_written(checkpoint: Path) -> None:
    full = run_command("aa claims > /dev/full", checkpoint)
    assert (full.returncode, full.stderr.count("\n")) == (2, 1), full.stderr
    pipe = run_command("set -o pipefail; aa claims | true", checkpoint)
    assert (pipe.returncode, pipe.stderr) == (141, "")
    plain = run_command('aa ask "a=1, a+2=?" --checkpoint "$MODEL"', checkpoint, PYTHONIOENCODING="ascii")
    assert "Traceback" not in plain.stderr
    assert "blocks.0" in plain.stdout
