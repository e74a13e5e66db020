"""The verdicts of certificates against other implementations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from aa_core.certificates.catalogue import domain_of, exposure_of
from aa_core.certificates.certificate import Certificate
from aa_core.certificates.certification import Plan, certify
from aa_core.certificates.chunk import DIGITS, chunk_of, judge, model_of
from aa_core.certificates.domain import Domain
from aa_core.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from aa_core.errors import InputError
from aa_core.fixtures import fixture_folder
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.task.problems import parse_problem
from circuit_tests.meta.certificates.cases import CONFIG, PLAN, TASK, checked, findings, quiet
from circuit_tests.meta.compiled_model import compiled_parameters


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


def test_a_limit_on_failures(checkpoint: Checkpoint, domain: Domain) -> None:
    model = model_of(domain.task, checkpoint.parameters, "")
    whole = chunk_of(domain, model, exposure_of(checkpoint.split), 0, domain.size, 10**6)
    limited = chunk_of(domain, model, exposure_of(checkpoint.split), 0, domain.size, 3)
    assert limited == replace(whole, failures=whole.failures[:3])


def test_logits_that_are_not_finite(checkpoint: Checkpoint, domain: Domain, tmp_path: Path) -> None:
    huge = {name: torch.full_like(weight, 3e38) for name, weight in checkpoint.parameters.items()}
    with pytest.raises(InputError, match=r"step_47.safetensors: a logit of this model is not finite.*--checkpoint"):
        certify(domain, replace(checkpoint, parameters=huge, sha256="0"), PLAN, tmp_path, quiet)
