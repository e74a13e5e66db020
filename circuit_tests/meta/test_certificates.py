"""Certificates: the verdict against a second implementation, and what is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from aa_core.certificates import certification
from aa_core.certificates.catalogue import domain_of, exposure_of
from aa_core.certificates.certificate import Certificate, CertificateFile, read_certificate
from aa_core.certificates.certification import Plan, certificate_code_hash, certify
from aa_core.certificates.checking import PROVENANCE, Check, check_certificate
from aa_core.certificates.chunk import DIGITS, Count, chunk_of, judge, model_of
from aa_core.certificates.consistency import Refusal, found_text
from aa_core.certificates.domain import Domain
from aa_core.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from aa_core.cli.main import main
from aa_core.errors import InputError
from aa_core.fixtures import fixture_folder
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.model.parameters import initial_parameters
from aa_core.report.certificates_page import certificates_page, load_certificates
from aa_core.task.problems import parse_problem
from aa_core.task.split import SplitConfig
from aa_core.training.codehash import PACKAGE, code_hash, imported_modules, training_code_hash
from circuit_tests.meta.compiled_model import compiled_parameters
from circuit_tests.meta.test_certificate_domains import TASK
from circuit_tests.meta.test_cli import refused
from circuit_tests.meta.tiny import TINY, StoppedError

ROOT = Path(__file__).parents[2]
COMMITTED = Path("docs/certificates")
CONFIG = replace(TINY, task=TASK, split=SplitConfig(never_left="c", never_right="a"))
PLAN = Plan(chunk_size=100, failure_limit=40)


def quiet(done: int, total: int) -> None:
    """No progress."""


def saved(path: Path, seed: int) -> Checkpoint:
    save_checkpoint(path, initial_parameters(CONFIG.task, CONFIG.model, 2.5, seed), CONFIG, 47)
    return load_checkpoint(path)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A random model, whose answers are right one time in five."""
    return saved(tmp_path_factory.mktemp("model") / "step_47.safetensors", 0)


@pytest.fixture(scope="module")
def domain(checkpoint: Checkpoint) -> Domain:
    return domain_of("1-var-one-assignment", {}, checkpoint.split)


@pytest.fixture(scope="module")
def certificate(checkpoint: Checkpoint, domain: Domain, tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certify(domain, checkpoint, PLAN, tmp_path_factory.mktemp("cache"), quiet)


def checked(
    certificate: Certificate, checkpoint: Checkpoint, sample: int | None = None, seals: dict[str, Any] | None = None
) -> Refusal | None:
    how = Check(sample, 1, np.random.default_rng(0))
    file = CertificateFile(certificate, certificate.seals if seals is None else seals)
    return check_certificate(file, checkpoint, how, quiet)


def findings(certificate: Certificate) -> dict[str, Any]:
    """Everything that does not depend on how it was computed."""
    fields = dataclasses.asdict(certificate)
    return {name: value for name, value in fields.items() if name not in PROVENANCE}


def exact_margins(
    checkpoint: Checkpoint, domain: Domain, dtype: torch.dtype = torch.float64
) -> tuple[np.ndarray, np.ndarray]:
    """Margins and answers by the hooked model, by default in double precision."""
    model = HookedAssignAndAdd(checkpoint.task, checkpoint.model, checkpoint.parameters).to(dtype)
    sequences = domain.sequences(np.arange(domain.size))
    with torch.no_grad():
        logits = model(torch.from_numpy(sequences.tokens))[:, -1].numpy()
    margins = [row[right] - max(np.delete(row, right)) for row, right in zip(logits, sequences.answers, strict=True)]
    return np.array(margins), logits.argmax(1)


@pytest.mark.parametrize("name", ["0-var", "1-var-one-assignment", "2-var-two-assignments"])
def test_the_verdict_is_that_of_the_hooked_model(checkpoint: Checkpoint, name: str, tmp_path: Path) -> None:
    domain = domain_of(name, {}, checkpoint.split)
    certificate = certify(domain, checkpoint, replace(PLAN, failure_limit=10**6), tmp_path, quiet)
    margins, answers = exact_margins(checkpoint, domain)
    wrong = np.flatnonzero(margins <= 0)
    assert 0 < len(wrong) < domain.size, "the model is wrong everywhere or nowhere, so this says little"
    assert certificate.errors == len(wrong)
    assert [failure.index for failure in certificate.failures] == wrong.tolist()
    assert [failure.answer for failure in certificate.failures] == answers[wrong].tolist()
    np.testing.assert_allclose([f.margin for f in certificate.failures], margins[wrong], atol=10.0**-DIGITS)
    assert certificate.least_margin == pytest.approx(margins.min(), abs=10.0**-DIGITS)
    assert certificate.least.index == margins.argmin()
    sequences = domain.sequences(np.arange(domain.size))
    for failure in certificate.failures[:50]:
        problem = parse_problem(domain.task, failure.problem)
        np.testing.assert_array_equal(problem.tokens(domain.task), sequences.tokens[failure.index])
        assert failure.right == problem.answer(domain.task)


def test_counts_by_division(checkpoint: Checkpoint, certificate: Certificate, domain: Domain) -> None:
    margins, _ = exact_margins(checkpoint, domain)
    sequences = domain.sequences(np.arange(domain.size))
    sizes, errors = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    never = {0: "c", 1: "a"}
    for values, variables, sources, margin in zip(
        sequences.values.tolist(), sequences.variables.tolist(), sequences.sources.tolist(), margins, strict=True
    ):
        side = 0 if variables[0] >= 0 else 1
        letter = TASK.variables[variables[side]]
        pool = "seen" if checkpoint.split.seen[tuple(values)] else "held-out"
        labels = {
            "pool": pool + (", one restricted letter" if letter == never[side] else ""),
            "kind": ("1L", "1R")[side],
            "values": "equal" if values[0] == values[1] else "different",
            f"{('left', 'right')[side]} letter": letter,
            f"{('left', 'right')[1 - side]} letter": "-",
            f"{('left', 'right')[side]} assigned at": str(sources[side] - 1),
            f"{('left', 'right')[1 - side]} assigned at": "-",
        }
        sizes.update(labels.items())
        errors.update(key for key in labels.items() if margin <= 0)
    found = {(axis, label): count for axis, labels in certificate.counts.items() for label, count in labels.items()}
    assert {key: count.size for key, count in found.items()} == sizes
    assert {key: count.errors for key, count in found.items()} == {key: errors[key] for key in sizes}


def changed_fixture(scales: dict[str, float], hidden: float = 0.0) -> Checkpoint:
    """The fixture with some weights scaled, and `hidden` times a direction that no logit reads written by the MLP."""
    final = load_checkpoint(fixture_folder() / "checkpoints/step_040000.safetensors")
    rng = np.random.default_rng(0)
    parameters = {name: weight * scales.get(name, 1.0) for name, weight in final.parameters.items()}
    w_out, w_u = (parameters[name].double().numpy() for name in ("blocks.1.mlp.W_out", "unembed.W_U"))
    direction = rng.normal(size=len(w_u))
    direction -= w_u @ np.linalg.lstsq(w_u, direction)[0]
    direction /= np.linalg.norm(direction)
    w_out = w_out + hidden * np.outer(rng.random(len(w_out)), direction)
    parameters["blocks.1.mlp.W_out"] = torch.from_numpy(w_out).float()
    return replace(final, parameters=parameters, sha256="of a changed model")


SHARP = {f"blocks.{layer}.attn.{name}": 1e3 for layer in (0, 1) for name in ("W_Q", "W_K")}
ADVERSARIAL: dict[str, tuple[dict[str, float], float]] = {
    "1e4": ({}, 1e4),
    "1e5": ({}, 1e5),
    "1e6": ({}, 1e6),
    "1e7": ({}, 1e7),
    "sharp": (SHARP, 0.0),
}


@pytest.mark.parametrize(
    ("case", "pairs"),
    [("1e7", "held-out"), *(pytest.param(case, "all", marks=pytest.mark.slow) for case in ADVERSARIAL)],
)
def test_terms_that_cancel_do_not_change_the_verdict(case: str, pairs: str, tmp_path: Path) -> None:
    """Rounding that the logits do not show: of large terms that cancel, and of large scores."""
    checkpoint = changed_fixture(*ADVERSARIAL[case])
    domain = domain_of("0-var", {"pairs": pairs}, checkpoint.split)
    certificate = certify(domain, checkpoint, Plan(failure_limit=10**6), tmp_path, quiet)
    margins, _ = exact_margins(checkpoint, domain)
    assert [failure.index for failure in certificate.failures] == np.flatnonzero(margins <= 0).tolist()
    assert certificate.least_margin == pytest.approx(margins.min(), abs=10.0**-DIGITS)
    assert certificate.least.index == margins.argmin()
    if case == "1e7":
        single, _ = exact_margins(checkpoint, domain, torch.float32)
        assert np.abs(single - margins).max() > 0.1, "single precision would do, so this says little"


def extended_logits(checkpoint: Checkpoint, tokens: np.ndarray) -> np.ndarray:
    """Logits at `=` in extended precision, written out."""
    weights = {name: weight.numpy().astype(np.longdouble) for name, weight in checkpoint.parameters.items()}
    resid = weights["embed.W_E"][tokens] + weights["pos_embed.W_pos"]
    later = np.triu(np.ones((tokens.shape[1], tokens.shape[1]), dtype=bool), 1)
    for layer in (0, 1):
        w_q, w_k, w_v, w_o = (weights[f"blocks.{layer}.attn.W_{name}"][0] for name in "QKVO")
        scores = (resid @ w_q) @ (resid @ w_k).transpose(0, 2, 1) / np.sqrt(np.longdouble(w_q.shape[1]))
        scores[:, later] = -np.inf
        pattern = np.exp(scores - scores.max(-1, keepdims=True))
        resid = resid + pattern / pattern.sum(-1, keepdims=True) @ (resid @ w_v) @ w_o
    last = resid[:, -1]
    post = np.maximum(last @ weights["blocks.1.mlp.W_in"], 0)
    return (last + post @ weights["blocks.1.mlp.W_out"]) @ weights["unembed.W_U"]


@pytest.mark.parametrize(("case", "error"), [("as it is", 1e-12), ("1e7", 1e-7), ("sharp", 1e-12)])
def test_rounding_is_below_the_digits_that_are_kept(case: str, error: float) -> None:
    checkpoint = changed_fixture(*ADVERSARIAL.get(case, ({}, 0.0)))
    domain = domain_of("0-var", {}, checkpoint.split)
    sequences = domain.sequences(np.arange(0, domain.size, 150))
    model = model_of(domain.task, checkpoint.parameters, "")
    margins = judge(model, torch.from_numpy(sequences.tokens), torch.from_numpy(sequences.answers)).margins
    logits = extended_logits(checkpoint, sequences.tokens)
    exact = [row[right] - max(np.delete(row, right)) for row, right in zip(logits, sequences.answers, strict=True)]
    np.testing.assert_allclose(margins.numpy(), np.array(exact, dtype=np.float64), rtol=0, atol=error)


def test_a_model_without_errors(tmp_path: Path) -> None:
    from circuit_tests.meta import compiled_model

    model = replace(CONFIG.model, d_model=compiled_model.D, d_head=compiled_model.D, d_mlp=40)
    config = replace(CONFIG, task=compiled_model.TASK, split=compiled_model.SPLIT.config, model=model)
    save_checkpoint(tmp_path / "compiled.safetensors", compiled_parameters(), config, 47)
    checkpoint = load_checkpoint(tmp_path / "compiled.safetensors")
    domain = domain_of("1-var-one-assignment", {}, checkpoint.split)
    certificate = certify(domain, checkpoint, Plan(), tmp_path, quiet)
    assert certificate.claim.startswith("All 10,164 answers of the model are right: every sum of one variable")
    assert certificate.failures == ()
    assert certificate.least_margin > 0
    assert checked(certificate, checkpoint) is None


@pytest.mark.slow
def test_processes_agree(checkpoint: Checkpoint, domain: Domain, certificate: Certificate, tmp_path: Path) -> None:
    parallel = certify(domain, checkpoint, replace(PLAN, jobs=2), tmp_path, quiet)
    assert findings(parallel) == findings(certificate)
    assert not list(tmp_path.rglob("*.journal")), "the journal is done with"


N_STOPPED = 5


def stop(done: int, total: int) -> None:
    if done == N_STOPPED:
        raise StoppedError


def stopped(domain: Domain, checkpoint: Checkpoint, plan: Plan, cache: Path) -> Path:
    """The journal of work that was stopped after some chunks."""
    with pytest.raises(StoppedError):
        certify(domain, checkpoint, plan, cache, stop)
    [journal] = cache.rglob("*.journal")
    return journal


def rechained(lines: list[bytes]) -> list[bytes]:
    """Lines of a journal with checksums that fit."""
    checksum, result = "", []
    for line in lines:
        data = line.partition(b" ")[2].removesuffix(b"\n")
        checksum = hashlib.sha256(checksum.encode() + data).hexdigest()
        result.append(f"{checksum} ".encode() + data + b"\n")
    return result


def one_error_fewer(line: bytes) -> bytes:
    """A line whose chunk has one error fewer, but not in its counts."""
    before, errors, after = re.split(rb'(?<="errors": )(\d+)', line, maxsplit=1)
    return before + str(int(errors) - 1).encode() + after


Lines = list[bytes]
# What is done to the lines (the key, then five chunks), and the chunks that are kept.
DAMAGES: dict[str, tuple[Callable[[Lines], Lines], int]] = {
    "none": (lambda lines: lines, 5),
    "half a line": (lambda lines: [*lines, b"half a line"], 5),
    "half a checked line": (lambda lines: [*lines, lines[5][:-1]], 5),
    "no checksum": (lambda lines: [*lines, b"no checksum\n"], 5),
    "not UTF-8": (lambda lines: rechained([*lines, b"x \xff\n"]), 5),
    "a changed number": (lambda lines: [*lines[:3], lines[3].replace(b'"errors": ', b'"errors": 1'), *lines[4:]], 2),
    "lost in the middle": (lambda lines: [*lines[:3], *lines[4:]], 2),
    "doubled": (lambda lines: [*lines[:3], lines[2], *lines[3:]], 2),
    "swapped": (lambda lines: [*lines[:3], lines[4], lines[3], lines[5]], 2),
    "lost, checksums renewed": (lambda lines: rechained([*lines[:3], *lines[4:]]), 2),
    "doubled, checksums renewed": (lambda lines: rechained([*lines[:3], lines[2], *lines[3:]]), 2),
    "no chunk, checksums renewed": (lambda lines: rechained([*lines[:4], b"x {}\n", *lines[4:]]), 3),
    "text for a number, checksums renewed": (
        lambda lines: rechained([*lines[:4], lines[4].replace(b'"errors": ', b'"errors": "x", "e": '), lines[5]]),
        3,
    ),
    "errors that the counts deny, checksums renewed": (
        lambda lines: rechained([*lines[:4], one_error_fewer(lines[4]), lines[5]]),
        3,
    ),
    "another key": (lambda lines: rechained([b"x other\n", *lines[1:]]), 0),
    "empty": (lambda lines: [], 0),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_stopped_work_goes_on_before_the_damage(
    checkpoint: Checkpoint, domain: Domain, certificate: Certificate, tmp_path: Path, damage: str
) -> None:
    journal = stopped(domain, checkpoint, PLAN, tmp_path)
    change, kept = DAMAGES[damage]
    lines = journal.read_bytes().splitlines(keepends=True)
    assert rechained(lines) == lines
    journal.write_bytes(b"".join(change(lines)))
    told: list[int] = []
    resumed = certify(domain, checkpoint, PLAN, tmp_path, lambda done, total: told.append(done))
    assert told == list(range(kept, 9)), "finished chunks are not judged again, others are"
    assert findings(resumed) == findings(certificate)


def test_lines_after_the_last_chunk(checkpoint: Checkpoint, certificate: Certificate, tmp_path: Path) -> None:
    domain = domain_of("1-var-one-assignment", {}, checkpoint.split)
    with pytest.raises(InputError, match="absent"):  # the work is done but nothing could be written
        certify(domain, checkpoint, PLAN, tmp_path, quiet, Path("/dev/null/absent.json"))
    [journal] = tmp_path.rglob("*.journal")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(rechained([*lines, lines[-1]])))
    told: list[int] = []
    resumed = certify(domain, checkpoint, PLAN, tmp_path, lambda done, total: told.append(done))
    assert told == [8]
    assert findings(resumed) == findings(certificate)
    assert not list(tmp_path.rglob("*.journal")), "the journal is done with"


def test_the_journal_serves_other_limits_on_failures(
    checkpoint: Checkpoint, domain: Domain, certificate: Certificate, tmp_path: Path
) -> None:
    stopped(domain, checkpoint, PLAN, tmp_path)
    told: list[int] = []
    with pytest.raises(StoppedError):
        certify(domain, checkpoint, replace(PLAN, failure_limit=3), tmp_path, stop)
    more = replace(PLAN, failure_limit=10**6)
    resumed = certify(domain, checkpoint, more, tmp_path, lambda done, total: told.append(done))
    fewest = next(number for number, line in enumerate(certificate.chunks) if line.errors > PLAN.failure_limit)
    assert told[0] == fewest < N_STOPPED, "a chunk that lists too few is judged again"
    assert len(resumed.failures) == resumed.errors


def test_two_processes_do_not_share_a_journal(checkpoint: Checkpoint, domain: Domain, tmp_path: Path) -> None:
    def again(done: int, total: int) -> None:
        certify(domain, checkpoint, PLAN, tmp_path, quiet)

    with pytest.raises(InputError, match="another process works on"):
        certify(domain, checkpoint, PLAN, tmp_path, again)


def test_an_honest_certificate_holds(checkpoint: Checkpoint, certificate: Certificate, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(certificate.json())
    assert read_certificate(tmp_path / "c.json") == CertificateFile(certificate, certificate.seals)
    assert checked(certificate, checkpoint) is None
    assert checked(certificate, checkpoint, sample=3) is None


def altered(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case str():
            return value.replace("1", "2", 1) if "1" in value else f"{value}x"
        case int() | float():
            return value + 1
        case tuple():
            return (*value[:-1], altered(value[-1]))
        case dict():
            key = next(iter(value), None)
            return {**value, key: altered(value[key])} if key is not None else {"prefix": ""}
        case _:
            field = "seed" if isinstance(value, SplitConfig) else dataclasses.fields(value)[0].name
            return replace(value, **{field: altered(getattr(value, field))})


FIELDS = [field.name for field in dataclasses.fields(Certificate) if field.name != "format"]


@pytest.mark.parametrize("field", FIELDS)
def test_any_field_that_was_changed_is_named(checkpoint: Checkpoint, certificate: Certificate, field: str) -> None:
    forged = replace(certificate, **{field: altered(getattr(certificate, field))})
    refusal = checked(forged, checkpoint, sample=1, seals=certificate.seals)
    assert refusal is not None
    assert refusal.field == field


# Where two fields no longer fit each other, the first in the order of checking is named.
NAMED = {"chunks": {"domain_sha256"}, "chunk_size": {"domain_sha256", "chunks"}, "failure_limit": {"failures"}}


@pytest.mark.parametrize("sample", [None, 1])
@pytest.mark.parametrize("field", [field for field in FIELDS if field not in PROVENANCE])
def test_a_change_with_its_seal_renewed_is_found_from_the_weights(
    checkpoint: Checkpoint, certificate: Certificate, field: str, sample: int | None
) -> None:
    forged = replace(certificate, **{field: altered(getattr(certificate, field))})
    refusal = checked(forged, checkpoint, sample)
    assert refusal is not None
    assert refusal.field in NAMED.get(field, {field})
    assert "\n" not in refusal.reason


def forge_chunk(certificate: Certificate, number: int) -> Certificate:
    """One error fewer in a chunk, and every number that depends on it changed along; no failure is listed."""
    line = certificate.chunks[number]
    chunks = list(certificate.chunks)
    chunks[number] = replace(line, errors=line.errors - 1)
    errors = certificate.errors - 1
    return replace(
        certificate,
        errors=errors,
        claim=certificate.claim.replace(
            found_text(certificate.size, certificate.errors), found_text(certificate.size, errors)
        ),
        chunks=tuple(chunks),
        failures=(),
        failure_limit=0,
        counts={},
    )


def test_a_consistent_forgery_is_found_by_the_chunk(checkpoint: Checkpoint, certificate: Certificate) -> None:
    n = len(certificate.chunks)
    found = [checked(forge_chunk(certificate, number), checkpoint, sample=1) for number in range(n)]
    assert sum(refusal is not None for refusal in found) == 1, "one random chunk finds one of the forgeries"
    assert {refusal.field for refusal in found if refusal} == {"chunks"}
    whole = [checked(forge_chunk(certificate, number), checkpoint, sample=n) for number in range(n)]
    assert {refusal.field for refusal in whole if refusal} == {"errors"}, "a sample of all chunks is the full check"
    assert None not in whole
    refusal = checked(forge_chunk(certificate, 0), checkpoint)
    assert refusal is not None
    assert refusal.field == "errors"


def test_least_margin_that_is_not_the_least(checkpoint: Checkpoint, certificate: Certificate) -> None:
    other = certificate.failures[0]
    least = replace(certificate.least, index=other.index, problem=other.problem)
    lines = tuple(replace(line, least_margin=max(line.least_margin, other.margin)) for line in certificate.chunks)
    forged = replace(certificate, least=least, least_margin=min(line.least_margin for line in lines), chunks=lines)
    assert forged.least_margin == other.margin
    refusal = checked(forged, checkpoint)
    assert refusal is not None
    assert refusal.field == "least_margin"


def test_failures_left_out_or_doubled(checkpoint: Checkpoint, certificate: Certificate) -> None:
    first, second, *rest = certificate.failures
    for failures in ((first, *rest), (first, first, *rest), (second, first, *rest)):
        refusal = checked(replace(certificate, failures=tuple(failures)), checkpoint)
        assert refusal is not None
        assert refusal.field == "failures"
    shorter = replace(certificate, failures=(first, *rest), failure_limit=len(rest) + 1)
    refusal = checked(shorter, checkpoint)
    assert refusal is not None
    assert refusal.field == "failures"
    refusal = checked(shorter, checkpoint, sample=len(certificate.chunks))
    assert refusal is not None
    assert refusal.field == "failures"


def test_other_weights_are_refused(certificate: Certificate, tmp_path: Path) -> None:
    refusal = checked(certificate, saved(tmp_path / "other.safetensors", 1))
    assert refusal is not None
    assert refusal.field == "weights_sha256"


def test_another_split_is_refused(certificate: Certificate, checkpoint: Checkpoint) -> None:
    other = load_checkpoint(checkpoint.path, SplitConfig(never_left="c", never_right="a", seed=7))
    refusal = checked(certificate, other)
    assert refusal is not None
    assert refusal.field == "split"


def test_other_code_is_refused(
    certificate: Certificate, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = (*certification.ROOTS, "aa_core.certificates.journal")
    monkeypatch.setattr(certification, "ROOTS", roots)
    refusal = checked(certificate, checkpoint)
    assert refusal is not None
    assert refusal.field == "code_sha256"


def test_the_code_hash_covers_what_decides_the_verdict(checkpoint: Checkpoint, domain: Domain) -> None:
    covered = {name for root in certification.ROOTS for name in imported_modules(PACKAGE, root)}
    needed = {"certificates.exposure", "certificates.domain", "model.symbol_space", "task.sequences"}
    assert {f"aa_core.{name}" for name in needed} <= covered
    two = domain_of("2-var-two-assignments", {}, checkpoint.split)
    assert certificate_code_hash(two) != certificate_code_hash(domain), "the module of the domain itself counts"
    assert code_hash(("aa_core.training.optimisation",)) == training_code_hash()


def test_a_limit_on_failures(checkpoint: Checkpoint, domain: Domain) -> None:
    model = model_of(domain.task, checkpoint.parameters, "")
    whole = chunk_of(domain, model, exposure_of(checkpoint.split), 0, domain.size, 10**6)
    limited = chunk_of(domain, model, exposure_of(checkpoint.split), 0, domain.size, 3)
    assert limited == replace(whole, failures=whole.failures[:3])


def test_logits_that_are_not_finite(checkpoint: Checkpoint, domain: Domain, tmp_path: Path) -> None:
    huge = {name: torch.full_like(weight, 3e38) for name, weight in checkpoint.parameters.items()}
    with pytest.raises(InputError, match=r"step_47.safetensors: a logit of this model is not finite.*--checkpoint"):
        certify(domain, replace(checkpoint, parameters=huge, sha256="0"), PLAN, tmp_path, quiet)


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


def test_small_chunks_of_a_large_domain_are_refused_at_once(checkpoint: Checkpoint, certificate: Certificate) -> None:
    final = load_checkpoint(fixture_folder() / "checkpoints/step_040000.safetensors")
    domain = domain_of("2-var-two-assignments", {}, final.split)
    forged = replace(
        certificate,
        domain=domain.name,
        task=final.task,
        split=final.split.config,
        weights_sha256=final.sha256,
        code_sha256=certificate_code_hash(domain),
        size=domain.size,
        chunk_size=1,
    )
    tracemalloc.start()
    refusal = checked(forged, final, sample=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refusal == Refusal("chunks", "expected 41354280, not 8")
    assert peak < 2**26, "the chunks were listed"


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


def test_committed_certificates_are_of_the_fixture_and_of_this_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    final = load_checkpoint(fixture_folder() / "checkpoints/step_040000.safetensors")
    committed = load_certificates(COMMITTED)
    assert "1-var-one-assignment" in committed
    for name, certificate in committed.items():
        renew = f"run: aa certify --domain {certificate.domain} --output {COMMITTED}/{name}.json"
        assert certificate.weights_sha256 == final.sha256, renew
        domain = domain_of(certificate.domain, certificate.parameters, final.split)
        assert certificate.code_sha256 == certificate_code_hash(domain), renew
    page = (ROOT / "docs/certificates.md").read_text()
    assert page == certificates_page(committed, COMMITTED), (
        f"run: aa certify --list {COMMITTED} --markdown {COMMITTED}.md"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(file.stem for file in (ROOT / COMMITTED).glob("*.json")))
def test_a_sample_of_a_committed_certificate_holds(name: str) -> None:
    file = read_certificate(ROOT / COMMITTED / f"{name}.json")
    final = load_checkpoint(fixture_folder() / "checkpoints/step_040000.safetensors")
    assert check_certificate(file, final, Check(4, 1, np.random.default_rng(0)), quiet) is None
