"""Invariants of the forward pass that training uses, and of its gradients, against the paper's definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from aa_core.gate.invariant import Finding, Invariant, first_fault
from aa_core.gate.plain import plain_forward
from aa_core.gate.setting import Setting
from aa_core.model import symbol_space
from aa_core.model.parameters import initial_parameters

N = 16
INIT_SCALE = 2.0  # patterns are neither uniform nor one-hot, so that every place matters
BOUND = 1e-6  # relative, in float64; the tables hold a few numbers in float32


def causal_mask(setting: Setting) -> Finding:
    """Which keys each query of blocks.0 looks at."""
    tokens, _ = _batch(setting)
    pattern = symbol_space.forward(symbol_space.symbol_tables(setting.config.task, _weights(setting)), tokens).pattern0
    looked_at = (pattern > 0).any(dim=0)
    allowed = torch.ones_like(looked_at).tril()

    def faults() -> Iterator[str]:
        for query, key in (looked_at != allowed).nonzero().tolist():
            verb = "looks at" if key > query else "cannot look at"
            yield f"position {query} {verb} position {key}: {(looked_at != allowed).sum()} such places"

    return first_fault(faults(), f"{int(allowed.sum())} places of {allowed.numel()}")


def token_embedding(setting: Setting) -> Finding:
    """The forward pass of a model without positions."""
    return _compared(setting, without="pos_embed.W_pos")


def position_embedding(setting: Setting) -> Finding:
    """The forward pass of a model that tells no token from another."""
    return _compared(setting, without="embed.W_E")


def activations(setting: Setting) -> Finding:
    """Patterns, residual stream, neurons and logits."""
    return _compared(setting)


def loss(setting: Setting) -> Finding:
    """The training loss against the cross-entropy of the logits at `=`."""
    (tokens, answers), parameters = _batch(setting), _weights(setting)
    found = float(_loss(setting, parameters, tokens, answers))
    expected = float(F.cross_entropy(plain_forward(parameters, tokens).logits, answers))
    return Finding(abs(found / expected - 1) < BOUND, f"loss {found:.6f}, expected {expected:.6f} nats")


def gradients(setting: Setting) -> Finding:
    """The gradient of the training loss against autograd's."""
    (tokens, answers), parameters = _batch(setting), _weights(setting)
    for parameter in parameters.values():
        parameter.requires_grad_()
    sources = (
        _loss(setting, parameters, tokens, answers),
        F.cross_entropy(plain_forward(parameters, tokens).logits, answers),
    )
    found, expected = (torch.autograd.grad(source, list(parameters.values())) for source in sources)
    errors = {name: _error(*pair) for name, *pair in zip(parameters, found, expected, strict=True)}

    def faults() -> Iterator[str]:
        for name, error in errors.items():
            if not error < BOUND:
                yield f"the gradient of {name} is off by {error:.1e}"

    return first_fault(faults(), f"{len(errors)} gradients to {max(errors.values()):.1e}")


def _weights(setting: Setting) -> dict[str, Tensor]:
    config = setting.config
    weights = initial_parameters(config.task, config.model, INIT_SCALE, config.seed)
    return {name: weight.double() for name, weight in weights.items()}


def _batch(setting: Setting) -> tuple[Tensor, Tensor]:
    """Any tokens at all, with `=` last, and any answers: what the forward pass does depends on neither being right."""
    task, generator = setting.config.task, torch.Generator().manual_seed(1)
    tokens = torch.randint(task.d_vocab, (N, task.n_ctx), generator=generator)
    tokens[:, -1] = task.equals_token
    return tokens, torch.randint(task.modulus, (N,), generator=generator)


def _loss(setting: Setting, parameters: dict[str, Tensor], tokens: Tensor, answers: Tensor) -> Tensor:
    tables = symbol_space.symbol_tables(setting.config.task, parameters)
    return cast(Tensor, symbol_space.loss(tables, tokens, answers))


def _compared(setting: Setting, without: str | None = None) -> Finding:
    """Activations against the plain ones, with one parameter set to zero or none."""
    (tokens, _), parameters = _batch(setting), _weights(setting)
    if without is not None:
        parameters[without] = torch.zeros_like(parameters[without])
    found = symbol_space.forward(symbol_space.symbol_tables(setting.config.task, parameters), tokens)
    expected = plain_forward(parameters, tokens)
    errors = {name: _error(getattr(found, name), getattr(expected, name)) for name in expected._fields}

    def faults() -> Iterator[str]:
        for name, error in errors.items():
            if not error < BOUND:
                yield f"{name} is off by {error:.1e}"

    return first_fault(faults(), f"{len(errors)} activations to {max(errors.values()):.1e}")


def _error(found: Tensor, expected: Tensor) -> float:
    """Relative, over all entries."""
    return float((found - expected).norm() / expected.norm())


INVARIANTS = (
    Invariant("forward/causal-mask", "a query looks at itself and at what is before it", causal_mask),
    Invariant("forward/token-embedding", "without positions, the model is the plain one", token_embedding),
    Invariant("forward/position-embedding", "without tokens, the model is the plain one", position_embedding),
    Invariant("forward/activations", "the model is the plain one", activations),
    Invariant("forward/loss", "the loss is the cross-entropy at `=`", loss),
    Invariant("forward/gradients", "the gradient is autograd's", gradients),
)
