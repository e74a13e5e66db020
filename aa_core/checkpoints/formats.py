"""How each format names and shapes the parameters, and what must be zero in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from aa_core.errors import InputError
from aa_core.model.config import ModelConfig, parameter_shapes
from aa_core.task.config import LAST_TOKENS, TaskConfig

EMBEDDINGS = ("embed.W_E", "pos_embed.W_pos")
PARAMETERS = tuple(parameter_shapes(TaskConfig(), ModelConfig()))
ABSENT = (
    *(f"blocks.{layer}.attn.b_{part}" for layer in (0, 1) for part in "QKVO"),
    *(f"blocks.0.mlp.{weight}" for weight in ("W_in", "W_out")),
    *(f"blocks.{layer}.mlp.b_{part}" for layer in (0, 1) for part in ("in", "out")),
    "unembed.b_U",
)
BUFFERS = tuple(f"blocks.{layer}.attn.{buffer}" for layer in (0, 1) for buffer in ("mask", "IGNORE"))


@dataclass(frozen=True)
class Layout:
    """A format's state dict.

    Attributes:
        format: name of the format.
        names: name in the file of every parameter, by its name here.
        zeros: tensors that this architecture lacks, so that they may only be there if they are zero.
        buffers: tensors that are no weights.
        linear: weights but the embeddings are stored as `nn.Linear` does: [out, in], without an axis of heads.
    """

    format: str
    names: Mapping[str, str]
    zeros: frozenset[str] = frozenset()
    buffers: frozenset[str] = frozenset()
    linear: bool = False

    def weights(self, tensors: Mapping[str, object]) -> dict[str, Tensor]:
        """The parameters in canonical names, order and orientation, whatever their sizes and dtype.

        Raises:
            InputError: a tensor is missing, unknown, not zero though it must be, not a dense tensor of floats,
                or has the wrong number of axes.
        """
        missing = [name for name in self.names.values() if name not in tensors]
        if missing:
            raise InputError(f"{_listed(missing)} missing, expected every parameter of the {self.format} format")
        extra = tensors.keys() - set(self.names.values()) - self.zeros - self.buffers
        if extra:
            raise InputError(
                f"{_listed(sorted(extra))} unknown, expected the parameters of two layers of one head each, "
                "an MLP after the second, no normalisation"
            )
        for name in sorted(self.zeros & tensors.keys()):
            value = _dense(name, tensors[name])
            if value.count_nonzero():
                largest = value.abs().max().item()
                raise InputError(
                    f"{name} holds values up to {largest:.3g}, expected exactly 0: the model has no biases, and "
                    "no MLP in its first layer"
                )
        return {name: self._oriented(name, tensors[stored]) for name, stored in self.names.items()}

    def parameters(self, weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
        """Copies in float32 of `weights`, whose shapes must be `shapes`.

        Raises:
            InputError: a shape differs.
        """
        for name, shape in shapes.items():
            if weights[name].shape != shape:
                found, expected = self._stored_shape(name, weights[name].shape), self._stored_shape(name, shape)
                raise InputError(f"{self.names[name]} has shape {found}, expected {expected} to fit the other sizes")
        return {
            name: weights[name].detach().to(torch.float32, copy=True, memory_format=torch.contiguous_format)
            for name in shapes
        }

    def check_finite(self, parameters: Mapping[str, Tensor]) -> None:
        """Refuse weights that are NaN or infinite.

        Raises:
            InputError: naming the tensor.
        """
        for name, parameter in parameters.items():
            if not parameter.isfinite().all():
                raise InputError(
                    f"{self.names[name]} holds NaN or infinite weights; use a checkpoint from before training diverged"
                )

    def _oriented(self, name: str, value: object) -> Tensor:
        stored = self.names[name]
        tensor = _dense(stored, value)
        if not tensor.is_floating_point():
            raise InputError(f"{stored} is of {tensor.dtype}, expected floating-point weights")
        heads = ".attn." in name
        n_axes = 3 if heads and not self.linear else 2
        if tensor.ndim != n_axes:
            raise InputError(f"{stored} has shape {tuple(tensor.shape)}, expected {n_axes} axes")
        if not self.linear or name in EMBEDDINGS:
            return tensor
        return tensor.T[None] if heads else tensor.T

    def _stored_shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (shape[-1], shape[-2]) if self.linear and name not in EMBEDDINGS else tuple(shape)


def _dense(name: str, value: object) -> Tensor:
    if not isinstance(value, Tensor):
        raise InputError(f"{name} is a {type(value).__name__}, expected a tensor")
    if value.layout != torch.strided or value.is_nested or value.is_meta or value.is_quantized:
        raise InputError(f"{name} is sparse, quantized or without data, expected a plain dense tensor")
    return value


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more + (" is" if len(names) == 1 else " are")


def _bridge_name(name: str) -> str:
    """`blocks.0.attn.W_Q` to `blocks.0.attn.q.weight`, `unembed.b_U` to `unembed.bias`."""
    module, _, leaf = name.rpartition(".")
    kind, part = leaf.split("_")
    inner = f"{module}.{part.lower()}" if module.startswith("blocks.") else module
    return f"{inner}.{'weight' if kind == 'W' else 'bias'}"


OWN = Layout("assign-and-add", {name: name for name in PARAMETERS})
HOOKED = Layout("hooked-transformer", OWN.names, frozenset(ABSENT), frozenset(BUFFERS))
BRIDGE = Layout(
    "transformer-bridge",
    {name: _bridge_name(name) for name in PARAMETERS},
    frozenset(map(_bridge_name, ABSENT)),
    linear=True,
)


def foreign_layout(tensors: Mapping[str, object]) -> Layout:
    """The format of TransformerLens that shares the most names with a state dict.

    `HookedTransformer`'s names are those of TransformerLens up to version 3, `TransformerBridge.boot_native`'s those
    that `transformer_lens.conversion_utils.convert_tl_checkpoint` and the bridge's `state_dict` give. The latter
    merge the heads into one axis: a model with two heads cannot be told from one with a single wide head.

    Raises:
        InputError: no name is known.
    """
    layout = max((HOOKED, BRIDGE), key=lambda layout: _n_shared(layout, tensors))
    if not _n_shared(layout, tensors):
        found = ", ".join(sorted(tensors)[:3]) or "nothing"
        raise InputError(
            f"holds {found}, expected the state dict of a HookedTransformer ({HOOKED.names['embed.W_E']}, ...) "
            f"or of a TransformerBridge ({BRIDGE.names['embed.W_E']}, ...)"
        )
    return layout


def _n_shared(layout: Layout, tensors: Mapping[str, object]) -> int:
    return len(tensors.keys() & set(layout.names.values()))


def inferred_sizes(weights: Mapping[str, Tensor]) -> tuple[TaskConfig, ModelConfig]:
    """Sizes that the shapes of the parameters say: vocabulary less constants, `+`, `=` and PAD are the variables;
    a prefix holds as many assignments as it has room and letters for.

    Raises:
        InputError: they make no task.
    """
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    d_vocab, d_model = shapes["embed.W_E"]
    n_ctx, modulus = shapes["pos_embed.W_pos"][0], shapes["unembed.W_U"][1]
    n_variables = d_vocab - modulus - 3
    try:
        task = TaskConfig(modulus, n_variables, min((n_ctx - LAST_TOKENS) // 2, n_variables), n_ctx)
        model = ModelConfig(d_model, shapes["blocks.0.attn.W_Q"][2], shapes["blocks.1.mlp.W_in"][1])
    except InputError as error:
        raise InputError(
            f"{d_vocab} embedded tokens, {n_ctx} positions and {modulus} classes make no assign-and-add task: {error}"
        ) from error
    return task, model
