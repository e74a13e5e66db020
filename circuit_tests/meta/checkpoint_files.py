"""Small checkpoints as other programs write them, for the tests of `aa_core.checkpoints`."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from aa_core.checkpoints import Checkpoint, load_subject, weights_sha256
from aa_core.errors import InputError
from aa_core.model.config import ModelConfig, parameter_shapes
from aa_core.model.parameters import initial_parameters
from aa_core.task.config import TaskConfig
from aa_core.task.split import SplitConfig
from aa_core.training.config import TrainConfig

TASK = TaskConfig(modulus=7, n_variables=5, max_assignments=2, n_ctx=8)
MODEL = ModelConfig(d_model=16, d_head=8, d_mlp=32)
SPLIT = SplitConfig(0.6, two_variable_frequency=0.5, never_left="e", never_right="b", seed=3)


def small_parameters(seed: int = 0, task: TaskConfig = TASK, model: ModelConfig = MODEL) -> dict[str, Tensor]:
    """Weights before training."""
    return initial_parameters(task, model, 0.8, seed)


def small_config(seed: int = 0) -> TrainConfig:
    """A run with no value at its default, so that a lost one shows."""
    return TrainConfig(
        task=TASK,
        model=MODEL,
        split=SPLIT,
        seed=seed,
        steps=50,
        batch_size=8,
        learning_rate=2e-3,
        decay_steps=7,
        beta1=0.8,
        beta2=0.99,
        eps=1e-7,
        weight_decay=0.1,
        init_scale=0.7,
        precision="bfloat16",
        log_every=10,
        log_sequences=20,
        checkpoint_every=((10, 5), (50, 25)),
    )


def hooked_state_dict(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What `HookedTransformer.state_dict()` gives for the model: also buffers, zero biases and a zero first MLP."""
    n_ctx, (_, d_model, d_head) = len(parameters["pos_embed.W_pos"]), parameters["blocks.0.attn.W_Q"].shape
    d_mlp, modulus = parameters["blocks.1.mlp.W_in"].shape[1], parameters["unembed.W_U"].shape[1]
    state = dict(parameters)
    for layer in (0, 1):
        for part in "QKV":
            state[f"blocks.{layer}.attn.b_{part}"] = torch.zeros(1, d_head)
        state[f"blocks.{layer}.attn.b_O"] = torch.zeros(d_model)
        state[f"blocks.{layer}.attn.mask"] = torch.ones(n_ctx, n_ctx, dtype=torch.bool).tril()
        state[f"blocks.{layer}.attn.IGNORE"] = torch.tensor(-torch.inf)
        state[f"blocks.{layer}.mlp.b_in"] = torch.zeros(d_mlp)
        state[f"blocks.{layer}.mlp.b_out"] = torch.zeros(d_model)
    state["blocks.0.mlp.W_in"] = torch.zeros(d_model, d_mlp)
    state["blocks.0.mlp.W_out"] = torch.zeros(d_mlp, d_model)
    state["unembed.b_U"] = torch.zeros(modulus)
    return state


def torch_bytes(content: object, *, as_zip: bool = True) -> bytes:
    """What `torch.save` writes; `as_zip=False` is its format before version 1.6."""
    buffer = io.BytesIO()
    torch.save(content, buffer, _use_new_zipfile_serialization=as_zip)
    return buffer.getvalue()


def refusal(path: Path, split: SplitConfig | None = None) -> str:
    """The one line that refuses to load `path`."""
    with pytest.raises(InputError) as caught:
        load_subject(path, split)
    message = str(caught.value)
    assert "\n" not in message, f"more than a line: {message!r}"
    assert str(path) in message, f"{message!r} does not name the file"
    return message


State = dict[str, object]


def without(*names: str) -> Callable[[State], State]:
    return lambda state: {name: value for name, value in state.items() if name not in names}


def having(name: str, value: object) -> Callable[[State], State]:
    return lambda state: state | {name: value}


def changed(name: str, change: Callable[[Tensor], object]) -> Callable[[State], State]:
    def apply(state: State) -> State:
        tensor = state[name]
        assert isinstance(tensor, Tensor)
        return state | {name: change(tensor.clone())}

    return apply


def filled(value: float) -> Callable[[Tensor], Tensor]:
    """Put a value at the last place."""

    def change(tensor: Tensor) -> Tensor:
        tensor.view(-1)[-1] = value
        return tensor

    return change


def assert_holds(checkpoint: Checkpoint, parameters: Mapping[str, Tensor]) -> None:
    """The checkpoint has exactly these weights, in the canonical order."""
    assert list(checkpoint.parameters) == list(parameter_shapes(checkpoint.task, checkpoint.model))
    for name, expected in parameters.items():
        found = checkpoint.parameters[name]
        assert found.dtype == torch.float32, f"{name} is {found.dtype}"
        assert found.is_contiguous(), f"{name} is strided"
        assert not found.requires_grad, f"{name} is in training"
        assert found.untyped_storage().nbytes() == 4 * found.numel(), f"{name} shares its memory"
        assert torch.equal(found, expected), f"{name} changed"
    assert checkpoint.sha256 == weights_sha256(parameters)


def bridge_config(task: TaskConfig, model: ModelConfig) -> Any:
    """TransformerLens's config of its native model in these sizes; importing it takes seconds."""
    from transformer_lens.config import TransformerBridgeConfig

    return TransformerBridgeConfig(
        d_model=model.d_model,
        d_head=model.d_head,
        d_mlp=model.d_mlp,
        n_heads=1,
        n_layers=2,
        n_ctx=task.n_ctx,
        d_vocab=task.d_vocab,
        d_vocab_out=task.modulus,
        act_fn="relu",
        normalization_type=None,
        positional_embedding_type="standard",
        architecture="TransformerLensNative",
    )
