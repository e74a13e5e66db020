"""Edits of the exact forward against hooks on the hooked model, place by place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from aa_core.circuits.interventions import Stream, half_on, intervened, symbols, with_added_score, without_edges
from aa_core.circuits.subject import DataConfig, Run, Subject
from aa_core.model.config import ModelConfig
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.model.parameters import initial_parameters
from aa_core.task.config import TaskConfig
from aa_core.task.sampling import Kind
from aa_core.task.split import Split, SplitConfig

TASK = TaskConfig(modulus=7, n_variables=4, max_assignments=2, n_ctx=8)
MODEL = ModelConfig(d_model=16, d_head=12, d_mlp=32)
Hook = Callable[..., Any]


@pytest.fixture(scope="module")
def subject() -> Subject:
    split = Split(TASK, SplitConfig(never_left="d", never_right="a"))
    # A large scale, so that patterns are far from uniform and every place matters.
    return Subject(initial_parameters(TASK, MODEL, 1.6, 0), split, DataConfig(full_prefix=64))


@pytest.fixture(scope="module")
def run(subject: Subject) -> Run:
    return subject.full_prefix(Kind.TWO)


@pytest.fixture(scope="module")
def model(subject: Subject) -> HookedAssignAndAdd:
    return HookedAssignAndAdd(TASK, MODEL, subject.parameters)


def hooked_logits(model: HookedAssignAndAdd, run: Run, hooks: list[Any]) -> Tensor:
    tokens = torch.from_numpy(run.sequences.tokens)
    with torch.no_grad():
        return model.run_with_hooks(tokens, fwd_hooks=hooks)[:, -1]


def noise(like: Tensor, seed: int = 1) -> Tensor:
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(seed))


def everywhere(edit: Callable[[Tensor], Tensor]) -> Hook:
    return lambda value, hook: edit(value)


def at_equals(edit: Callable[[Tensor], Tensor]) -> Hook:
    """Hook that edits the last position only."""

    def changed(value: Tensor, hook: object) -> Tensor:
        return torch.cat([value[:, :-1], edit(value[:, -1])[:, None]], dim=1)

    return changed


def read_through(matrix: Tensor, edited: Tensor, *, last: bool = False) -> Hook:
    """Hook that gives what an edited stream gives through a matrix; heads have their own dimension."""

    def changed(value: Tensor, hook: object) -> Tensor:
        new = (edited @ matrix).view(value[:, -1].shape if last else value.shape)
        return torch.cat([value[:, :-1], new[:, None]], dim=1) if last else new

    return changed


def assert_same(ours: Tensor, theirs: Tensor, clean: Stream) -> None:
    """Equal, and not for the reason that the edit changes nothing."""
    assert not torch.allclose(ours, clean.logits, atol=0.1), "the edit should change the logits"
    torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-4)


def test_no_edit_is_the_forward_pass(subject: Subject, run: Run, model: HookedAssignAndAdd) -> None:
    stream = intervened(subject, run)
    torch.testing.assert_close(stream.logits, run.activations.logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(stream.resid_mid1, run.activations.resid_mid, atol=1e-4, rtol=1e-4)
    assert (stream.correct.numpy() == run.correct).all()

    _, cache = model.run_with_cache(torch.from_numpy(run.sequences.tokens))
    for ours, name in (
        (stream.pattern0, "blocks.0.attn.hook_pattern"),
        (stream.attn_out0, "blocks.0.hook_attn_out"),
        (stream.resid_pre1, "blocks.1.hook_resid_pre"),
        (stream.pattern1, "blocks.1.attn.hook_pattern"),
        (stream.attn_out1, "blocks.1.hook_attn_out"),
        (stream.resid_mid1, "blocks.1.hook_resid_mid"),
        (stream.mlp_post1, "blocks.1.mlp.hook_post"),
        (stream.mlp_out1, "blocks.1.hook_mlp_out"),
        (stream.resid_post1, "blocks.1.hook_resid_post"),
    ):
        theirs = cache[name][:, 0] if name.endswith("pattern") else cache[name]
        theirs = theirs if theirs.shape == ours.shape else theirs[:, -1]
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
    for ours in (stream.k_input1, stream.v_input1, stream.q_input1[:, None]):
        torch.testing.assert_close(ours, stream.resid_pre1[:, -ours.shape[1] :], atol=0, rtol=0)
    torch.testing.assert_close(stream.mlp_in1, stream.resid_mid1, atol=0, rtol=0)


def test_pattern0(subject: Subject, run: Run, model: HookedAssignAndAdd) -> None:
    clean = intervened(subject, run)
    factor = noise(clean.pattern0).exp()
    ours = intervened(subject, run, pattern0=lambda pattern: pattern * factor)
    hook = everywhere(lambda pattern: pattern * factor[:, None])
    assert_same(ours.logits, hooked_logits(model, run, [("blocks.0.attn.hook_pattern", hook)]), clean)


def test_attn_out0(subject: Subject, run: Run, model: HookedAssignAndAdd) -> None:
    clean = intervened(subject, run)
    ours = intervened(subject, run, attn_out0=lambda out: out + noise(out))
    hook = everywhere(lambda out: out + noise(out))
    assert_same(ours.logits, hooked_logits(model, run, [("blocks.0.hook_attn_out", hook)]), clean)


@pytest.mark.parametrize("letter", ["q", "k", "v"])
def test_inputs_of_blocks_1(subject: Subject, run: Run, model: HookedAssignAndAdd, letter: str) -> None:
    clean = intervened(subject, run)
    name = f"{letter}_input1"
    value = getattr(clean, name)
    edited = value + 3 * noise(value)
    ours = intervened(subject, run, **{name: edited})
    matrix = subject.parameters[f"blocks.1.attn.W_{letter.upper()}"][0]
    hook = read_through(matrix, edited, last=letter == "q")
    assert_same(ours.logits, hooked_logits(model, run, [(f"blocks.1.attn.hook_{letter}", hook)]), clean)


def test_pattern1(subject: Subject, run: Run, model: HookedAssignAndAdd) -> None:
    clean = intervened(subject, run)
    row = half_on(torch.from_numpy(run.sequences.sources), TASK.n_ctx)
    ours = intervened(subject, run, pattern1=row)

    def hook(pattern: Tensor, hook: object) -> Tensor:
        return torch.cat([pattern[:, :, :-1], row[:, None, None]], dim=2)

    assert_same(ours.logits, hooked_logits(model, run, [("blocks.1.attn.hook_pattern", hook)]), clean)


@pytest.mark.parametrize(
    ("name", "hook_name"), [("attn_out1", "blocks.1.hook_attn_out"), ("resid_post1", "blocks.1.hook_resid_post")]
)
def test_vectors_at_equals(subject: Subject, run: Run, model: HookedAssignAndAdd, name: str, hook_name: str) -> None:
    clean = intervened(subject, run)
    ours = intervened(subject, run, **{name: lambda value: value + noise(value)})
    hook = at_equals(lambda value: value + noise(value))
    assert_same(ours.logits, hooked_logits(model, run, [(hook_name, hook)]), clean)


def test_mlp_in_leaves_the_skip_alone(subject: Subject, run: Run, model: HookedAssignAndAdd) -> None:
    clean = intervened(subject, run)
    ours = intervened(subject, run, mlp_in1=clean.attn_out1)
    hook = read_through(subject.parameters["blocks.1.mlp.W_in"], clean.attn_out1, last=True)
    assert_same(ours.logits, hooked_logits(model, run, [("blocks.1.mlp.hook_pre", hook)]), clean)


def test_later_edits_see_the_effect_of_earlier_ones(subject: Subject, run: Run, model: HookedAssignAndAdd) -> None:
    clean = intervened(subject, run)
    both = intervened(
        subject, run, attn_out0=lambda out: out + noise(out), attn_out1=lambda out: out.roll(1, 0) + noise(out)
    )
    hooks = [
        ("blocks.0.hook_attn_out", everywhere(lambda out: out + noise(out))),
        ("blocks.1.hook_attn_out", at_equals(lambda out: out.roll(1, 0) + noise(out))),
    ]
    assert_same(both.logits, hooked_logits(model, run, hooks), clean)


def test_gradient_with_respect_to_an_edit(subject: Subject, run: Run, model: HookedAssignAndAdd) -> None:
    clean = intervened(subject, run)
    row = clean.pattern1.clone().requires_grad_()
    loss = torch.nn.functional.cross_entropy(
        intervened(subject, run, pattern1=row).logits, torch.from_numpy(run.sequences.answers)
    )
    (ours,) = torch.autograd.grad(loss, row)

    kept: list[Tensor] = []

    def hook(pattern: Tensor, hook: object) -> Tensor:
        kept.append(pattern)
        pattern.retain_grad()
        return pattern

    tokens = torch.from_numpy(run.sequences.tokens)
    logits = model.run_with_hooks(tokens, fwd_hooks=[("blocks.1.attn.hook_pattern", hook)])[:, -1]
    torch.nn.functional.cross_entropy(logits, torch.from_numpy(run.sequences.answers)).backward()
    assert kept[0].grad is not None
    torch.testing.assert_close(ours, kept[0].grad[:, 0, -1], atol=1e-5, rtol=1e-3)


def test_added_score_is_an_added_score(subject: Subject, run: Run, model: HookedAssignAndAdd) -> None:
    clean = intervened(subject, run)
    added = torch.zeros_like(clean.pattern0)
    added[:, -1, -2] = 2.5
    ours = intervened(subject, run, pattern0=lambda pattern: with_added_score(pattern, added))
    hook = everywhere(lambda scores: scores + added[:, None])
    assert_same(ours.logits, hooked_logits(model, run, [("blocks.0.attn.hook_attn_scores", hook)]), clean)


def test_without_edges() -> None:
    pattern = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
    edges = torch.tensor([[True, False, False], [False, False, True]])
    assert without_edges(pattern, edges).tolist() == [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]


def test_symbols_sum_to_what_blocks_0_writes(subject: Subject, run: Run) -> None:
    stream, x = intervened(subject, run), symbols(subject)
    tokens = torch.from_numpy(run.sequences.tokens)
    written = stream.pattern0 @ (x.carried_tokens[tokens] + x.carried_positions)
    torch.testing.assert_close(stream.attn_out0, written)
    torch.testing.assert_close(stream.resid_pre1 - stream.attn_out0, x.tokens[tokens] + x.positions, atol=1e-5, rtol=0)
