"""The fast forward pass and its backward against three other implementations of the same model."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformer_lens.conversion_utils import convert_tl_checkpoint
from transformer_lens.model_bridge import TransformerBridge

from aa_core.gate.plain import plain_forward
from aa_core.model.config import ModelConfig
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.model.parameters import initial_parameters
from aa_core.model.symbol_space import forward, loss, symbol_tables
from aa_core.task.config import TaskConfig
from circuit_tests.meta.checkpoint_files import bridge_config

SMALL = TaskConfig(modulus=7, n_variables=4, max_assignments=2, n_ctx=8)
SIZES = {
    "paper's": (TaskConfig(), ModelConfig()),
    "small": (SMALL, ModelConfig(d_model=16, d_head=16, d_mlp=32)),
    "narrow head": (SMALL, ModelConfig(d_model=16, d_head=5, d_mlp=32)),
    "wide head": (SMALL, ModelConfig(d_model=6, d_head=24, d_mlp=10)),
    "one of each": (SMALL, ModelConfig(d_model=1, d_head=1, d_mlp=1)),
    "long": (TaskConfig(modulus=3, n_variables=9, max_assignments=8, n_ctx=31), ModelConfig(12, 12, 20)),
}
INIT_SCALES = {"paper's": 2.4, "long": 1.8}  # at these, and 1.4 elsewhere, patterns are neither uniform nor one-hot
N = 24


def weights(size: str) -> dict[str, Tensor]:
    """Float64 weights that are exact in float32."""
    initial = initial_parameters(*SIZES[size], INIT_SCALES.get(size, 1.4), 0)
    return {name: weight.double() for name, weight in initial.items()}


def batch(task: TaskConfig) -> tuple[Tensor, Tensor]:
    """Any tokens at all, with `=` last, which is all that the fast forward takes for granted."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(task.d_vocab, (N, task.n_ctx), generator=generator)
    tokens[:, -1] = task.equals_token
    return tokens, torch.randint(task.modulus, (N,), generator=generator)


def relative_error(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    return ((found - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("size", SIZES)
def test_activations_are_those_of_the_hooked_model(size: str):
    task, model = SIZES[size]
    parameters, (tokens, _) = weights(size), batch(task)
    hooked = HookedAssignAndAdd(task, model, parameters).double()
    with torch.no_grad():
        logits, cache = hooked.run_with_cache(tokens)
    fast = forward(symbol_tables(task, parameters), tokens)
    pairs = {
        "logits": (fast.logits, logits[:, -1]),
        "blocks.0 pattern": (fast.pattern0, cache["blocks.0.attn.hook_pattern"][:, 0]),
        "blocks.1 pattern": (fast.pattern1, cache["blocks.1.attn.hook_pattern"][:, 0, -1]),
        "resid_mid": (fast.resid_mid, cache["blocks.1.hook_resid_mid"][:, -1]),
        "mlp post": (fast.post, cache["blocks.1.mlp.hook_post"][:, -1]),
    }
    for name, (found, expected) in pairs.items():
        error = relative_error(found, expected)
        assert error < 1e-6, f"{name} is off by {error:.1e}"
    for pattern in (fast.pattern0[:, -1], fast.pattern1):
        largest = pattern.max(-1).values.mean()
        assert 1.3 / task.n_ctx < largest < 0.9, f"the test is too easy: the largest weight is {largest:.3f} on average"


@pytest.mark.parametrize("size", SIZES)
def test_logits_are_those_of_the_plain_forward(size: str):
    task, model = SIZES[size]
    parameters, (tokens, _) = weights(size), batch(task)
    expected = plain_forward(parameters, tokens).logits
    assert relative_error(forward(symbol_tables(task, parameters), tokens).logits, expected) < 1e-6
    hooked = HookedAssignAndAdd(task, model, parameters).double()
    assert relative_error(hooked(tokens)[:, -1], expected) < 1e-6


@pytest.mark.parametrize("size", ["paper's", "small"])
def test_logits_are_those_of_transformer_lens(size: str):
    """TransformerLens's own native model, with the parts that this architecture lacks set to zero."""
    task, model = SIZES[size]
    parameters, (tokens, _) = {name: weight.float() for name, weight in weights(size).items()}, batch(task)
    config = bridge_config(task, model)
    bridge = cast(Any, TransformerBridge).boot_native(config)
    state = dict(parameters)
    for layer in (0, 1):
        state |= {f"blocks.{layer}.attn.b_{part}": torch.zeros(1, model.d_head) for part in "QKV"}
        state[f"blocks.{layer}.attn.b_O"] = torch.zeros(model.d_model)
        state |= {
            f"blocks.{layer}.mlp.b_in": torch.zeros(model.d_mlp),
            f"blocks.{layer}.mlp.b_out": torch.zeros(model.d_model),
        }
    state["blocks.0.mlp.W_in"] = torch.zeros(model.d_model, model.d_mlp)
    state["blocks.0.mlp.W_out"] = torch.zeros(model.d_mlp, model.d_model)
    state["unembed.b_U"] = torch.zeros(task.modulus)
    bridge.load_state_dict(convert_tl_checkpoint(state, config), strict=True)
    with torch.no_grad():
        expected = bridge(tokens)[:, -1]
    assert relative_error(forward(symbol_tables(task, parameters), tokens).logits, expected) < 1e-5


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-9), (torch.float32, 1e-4)], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_gradients_are_those_of_the_hooked_model(size: str, dtype: torch.dtype, bound: float):
    task, model = SIZES[size]
    parameters, (tokens, answers) = weights(size), batch(task)
    hooked = HookedAssignAndAdd(task, model, parameters).double()
    expected_loss = F.cross_entropy(hooked(tokens)[:, -1], answers)
    expected_loss.backward()
    fast = {name: weight.to(dtype).requires_grad_() for name, weight in parameters.items()}
    found_loss = cast(Tensor, loss(symbol_tables(task, fast), tokens, answers))
    found_loss.backward()
    assert relative_error(found_loss.double(), expected_loss) < bound
    for name, parameter in hooked.named_parameters():
        found, expected = fast[name].grad, parameter.grad
        assert found is not None
        assert expected is not None
        error = relative_error(found.double(), expected)
        assert error < bound, f"the gradient of {name} is off by {error:.1e}"


def test_gradients_are_those_of_finite_differences():
    task = TaskConfig(modulus=3, n_variables=2, max_assignments=2, n_ctx=8)
    initial = initial_parameters(task, ModelConfig(d_model=4, d_head=3, d_mlp=5), 1.4, 0)
    parameters, (tokens, answers) = {name: weight.double() for name, weight in initial.items()}, batch(task)

    def loss_of(*tensors: Tensor) -> Tensor:
        return cast(Tensor, loss(symbol_tables(task, dict(zip(parameters, tensors, strict=True))), tokens, answers))

    inputs = tuple(parameter.requires_grad_() for parameter in parameters.values())
    assert torch.autograd.gradcheck(loss_of, inputs)


def test_the_loss_is_a_mean_that_scales_its_gradient():
    parameters, (tokens, answers) = weights("small"), batch(SMALL)
    for parameter in parameters.values():
        parameter.requires_grad_()
    gradients = []
    for factor, repeats in ((1, 1), (3, 1), (1, 2)):
        tables = symbol_tables(SMALL, parameters)
        mean = cast(Tensor, loss(tables, tokens.repeat(repeats, 1), answers.repeat(repeats)))
        gradients.append(torch.autograd.grad(factor * mean, list(parameters.values())))
    for name, one, three, twice in zip(parameters, *gradients, strict=True):
        assert relative_error(three, 3 * one) < 1e-12, name
        assert relative_error(twice, one) < 1e-12, f"{name}: each sequence twice is the same mean"


def test_no_gradient_is_kept_without_asking():
    parameters, (tokens, _) = weights("small"), batch(SMALL)
    for parameter in parameters.values():
        parameter.requires_grad_()
    assert not forward(symbol_tables(SMALL, parameters), tokens).logits.requires_grad
