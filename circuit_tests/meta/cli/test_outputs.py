"""Commands write over nothing that they read and over nothing that is no report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aa_core.cli.outputs import ENDINGS, check_outputs
from aa_core.errors import InputError


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--json", "step_5.safetensors"),
        ("--json", "model.pth"),
        ("--output", "model"),
        ("--json", "config.json"),
        ("--json", "manifest.json"),
        ("--markdown", "report.json"),
        ("--html", "page.md"),
        ("--csv", "table.json"),
        ("--junit", "results.json"),
    ],
)
def test_what_is_no_such_report_is_not_replaced(tmp_path: Path, option: str, name: str) -> None:
    path = tmp_path / name
    check_outputs({option: path})  # nothing is there yet
    path.write_text("precious")
    with pytest.raises(InputError, match=rf"{option} .*{name}: it is there"):
        check_outputs({option: path})


@pytest.mark.parametrize(("option", "name"), [("--json", "a.json"), ("--html", "a.HTML"), ("--markdown", "a.md")])
def test_an_older_report_is_replaced(tmp_path: Path, option: str, name: str) -> None:
    (tmp_path / name).write_text("old")
    check_outputs({option: tmp_path / name, "--csv": None}, {"--checkpoint": tmp_path, "--expectations": None})


def test_inputs_and_other_outputs_are_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(InputError, match=r"--json .* is what --checkpoint reads"):
        check_outputs({"--json": path}, {"--checkpoint": tmp_path / "." / "a.json"})
    with pytest.raises(InputError, match=r"--output .* is what --json writes"):
        check_outputs({"--json": path, "--output": path})


@pytest.mark.parametrize("path", ["/proc/x.json", "{file}/x.json", "{folder}"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("")
    output = Path(path.format(file=tmp_path / "file", folder=tmp_path))
    with pytest.raises(InputError, match=r"cannot write .* choose another place"):
        check_outputs({"--json": output})
    assert [item.name for item in tmp_path.iterdir()] == ["file"], "nothing is left behind"


def test_folders_that_are_not_there_yet_are_fine(tmp_path: Path) -> None:
    check_outputs({"--json": tmp_path / "new" / "deep" / "a.json"})
    assert not list(tmp_path.iterdir()), "nothing is made before the work"


MODULES = sorted((Path(__file__).parents[3] / "aa_core" / "cli").glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=[module.stem for module in MODULES])
def test_every_command_that_writes_a_report_checks_where(module: Path) -> None:
    source = module.read_text()
    writes = [option for option in ENDINGS if re.search(rf'"{option}",\s+type=path', source)]
    own_folder = module.stem == "fixture"  # replaces nothing but a fixture, see `write_fixture`
    assert not writes or own_folder or "check_outputs(" in source, f"{module.name} writes {writes} unchecked"
