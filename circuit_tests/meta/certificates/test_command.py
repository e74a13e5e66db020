"""`aa certify`: what it prints, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aa_core.certificates.certificate import Certificate, read_certificate
from aa_core.certificates.chunk import Count
from aa_core.certificates.consistency import found_text
from aa_core.checkpoints import Checkpoint
from aa_core.cli.main import main
from aa_core.fixtures import fixture_folder
from circuit_tests.meta.command_line import refused


def test_the_command_line(
    checkpoint: Checkpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AA_CACHE", str(tmp_path / "cache"))
    file, model = tmp_path / "c.json", ("--checkpoint", str(checkpoint.path))
    command = ["certify", "--domain", "0-var", "--pairs", "held-out", "--prefix", "b=2", "--output", str(file), *model]
    assert main([*command, "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    certificate = read_certificate(file).certificate
    assert certificate.claim in printed
    assert certificate.least.problem in printed
    assert certificate.size == len(checkpoint.split.held_out_pairs)
    assert main(["certify", "--check", str(file), *model, "--jobs", "1"]) == 0
    assert "all 8 sequences were judged anew" in capsys.readouterr().out
    assert main(["certify", "--check", str(file), *model, "--jobs", "1", "--sample", "1"]) == 0
    assert "all 8 sequences were judged anew" in capsys.readouterr().out, "a sample of all chunks is the full check"
    assert main(["ask", certificate.failures[0].problem, *model]) == 1, "a listed failure is answered wrong again"
    assert f"model {certificate.failures[0].answer}, true {certificate.failures[0].right}" in capsys.readouterr().out
    file.write_text(file.read_text().replace('"jobs": 1', '"jobs": 2'))
    assert main(["certify", "--check", str(file), *model]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("refused: jobs: ")
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "is no certificate"),
        (lambda text: "[]", "expected an object"),
        (lambda text: text[: len(text) // 2], "is no certificate"),
        (lambda text: text.replace('"size"', '"sizes"'), "size"),
        (lambda text: text.replace("certificate 1", "certificate 2"), "format"),
        (lambda text: text.replace('"errors": ', '"errors": "x", "errors": "', 1), "is no certificate"),
        (lambda text: text.replace('"seconds": ', '"seconds": NaN, "second": '), "second"),
        (lambda text: text.replace('"seals"', '"seal"'), "seal"),
        (lambda text: "[" * 100_000, "is no certificate"),
    ],
)
def test_a_file_that_is_no_certificate_is_named(
    certificate: Certificate,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[str], str],
    message: str,
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(change(certificate.json().decode()))
    line = refused(capsys, "certify", "--check", file)
    assert str(file) in line
    assert message in line
    assert str(file) in refused(capsys, "certify", "--list", tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "one of the arguments --domain --check --list is required"),
        (("--domain", "0-var", "--sample", "3"), "--sample does not go with --domain"),
        (("--domain", "0-var", "--jobs", "0"), "--jobs is 0"),
        (("--domain", "0-var", "--failures", "-1"), "--failures is -1"),
        (("--domain", "0-var", "--output", "."), "not a regular file"),
        (("--domain", "nothing"), "expected one of 0-var"),
        (("--domain", "1-var-one-assignment", "--sequence", "1+1"), "has no sequence"),
        (("--check", "absent.json"), "absent.json"),
        (("--check", "absent.json", "--output", "x"), "--output does not go with --check"),
        (("--check", "absent.json", "--sample", "0"), "--sample is 0"),
        (("--list", "."), "no .json certificate"),
        (("--list", ".", "--jobs", "2"), "--jobs does not go with --list"),
    ],
)
def test_bad_options(
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, "certify", *options)


def test_a_sample_says_what_it_leaves_out(
    checkpoint: Checkpoint, certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(certificate.json())
    model = ("--checkpoint", str(checkpoint.path))
    assert main(["certify", "--check", str(file), *model, "--jobs", "1", "--sample", "3"]) == 0
    assert "not refused: 3 of 8 chunks (at random), the 40 listed failures" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["note", "task.note", "chunks.2.note"])
def test_a_field_that_no_certificate_has_is_refused(
    checkpoint: Checkpoint, certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    fields = json.loads(certificate.json())
    record: Any = fields
    *way, last = name.split(".")
    for key in way:
        record = record[int(key) if key.isdigit() else key]
    record[last] = "x"
    file = tmp_path / "c.json"
    file.write_text(json.dumps(fields))
    assert main(["certify", "--check", str(file), "--checkpoint", str(checkpoint.path)]) == 1
    assert capsys.readouterr().out == f"refused: {name}: no certificate has this field\n"
    assert f"{file}: {name}: " in refused(capsys, "certify", "--list", tmp_path)


def resealed_count(certificate: Certificate, size: int, errors: int) -> Certificate:
    counts = {name: dict(labels) for name, labels in certificate.counts.items()}
    label = next(iter(counts["pool"]))
    counts["pool"][label] = Count(size, errors)
    return replace(certificate, counts=counts)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda c: resealed_count(c, 0, 0), "counts"),
        (lambda c: resealed_count(c, 1, 10**400), "counts"),
        (lambda c: resealed_count(c, -1, 0), "counts"),
        (lambda c: replace(c, size=0), "size"),
        (lambda c: replace(c, size=10**400), "chunks"),
        (lambda c: replace(c, chunk_size=0), "chunk_size"),
        (lambda c: replace(c, errors=10**400), "errors"),
        (lambda c: replace(c, claim=c.claim.replace(found_text(c.size, c.errors), found_text(c.size, 0))), "claim"),
        (lambda c: replace(c, failures=()), "failures"),
    ],
)
def test_a_list_names_numbers_that_do_not_fit(
    certificate: Certificate,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Certificate], Certificate],
    field: str,
) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(change(certificate).json())
    assert f"{file}: {field}: " in refused(capsys, "certify", "--list", tmp_path)


def test_a_list_names_a_field_whose_seal_does_not_fit(
    certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.json"
    found = found_text(certificate.size, certificate.errors).encode()
    changed = certificate.json().replace(found, found_text(certificate.size, 0).encode())
    assert changed != certificate.json()
    file.write_bytes(changed)
    assert f"{file}: claim: changed since" in refused(capsys, "certify", "--list", tmp_path)


def test_inputs_are_not_overwritten(
    checkpoint: Checkpoint, certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for step in (47, 48):
        shutil.copy(checkpoint.path, folder / f"step_{step}.safetensors")
    (tmp_path / "c.json").write_bytes(certificate.json())
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()}
    domain = ("certify", "--domain", "0-var", "--checkpoint", folder)
    for file in folder.iterdir():
        assert str(file) in refused(capsys, *domain, "--output", file)
    fixture = fixture_folder() / "manifest.json"
    assert str(fixture) in refused(capsys, "certify", "--domain", "0-var", "--output", fixture)
    assert "c.json" in refused(capsys, "certify", "--list", tmp_path, "--markdown", tmp_path / "c.json")
    under_a_file = checkpoint.path / "c.json"
    assert str(under_a_file) in refused(capsys, *domain, "--output", under_a_file)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()} == before
