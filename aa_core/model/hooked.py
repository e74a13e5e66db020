"""The model with TransformerLens hooks, for interventions and as a second implementation of the forward pass."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint

from aa_core.model.config import ModelConfig, parameter_shapes
from aa_core.model.parameters import Parameters
from aa_core.task.config import TaskConfig


class HookedAssignAndAdd(HookedRootModule):
    """Two layers of one causal head, an MLP after the second, no biases, no normalisation.

    Parameters and hooks have `HookedTransformer`'s names (`blocks.0.attn.hook_pattern`,
    `blocks.1.hook_resid_mid`, ...). `blocks.0` has no MLP, so it has no `hook_resid_mid`.

    Args:
        task: sizes of the vocabulary and of the sequence.
        model: widths.
        parameters: weights to copy; without them every weight is zero.
    """

    def __init__(self, task: TaskConfig, model: ModelConfig, parameters: Parameters | None = None) -> None:
        super().__init__()
        shapes = parameter_shapes(task, model)
        self.embed = _Weights(shapes, "embed.")
        self.hook_embed = HookPoint()
        self.pos_embed = _Weights(shapes, "pos_embed.")
        self.hook_pos_embed = HookPoint()
        self.blocks = nn.ModuleList(_Block(shapes, layer, model.d_head) for layer in (0, 1))
        self.unembed = _Weights(shapes, "unembed.")
        if parameters is not None:
            self.load_state_dict(dict(parameters), strict=True)
        self.setup()

    def forward(self, tokens: Int[Tensor, "batch n_ctx"]) -> Float[Tensor, "batch n_ctx modulus"]:
        """Logits at every position; the task reads the last one."""
        embedded = self.hook_embed(self.embed.W_E[tokens])
        positions = self.hook_pos_embed(self.pos_embed.W_pos[: tokens.shape[1]].expand_as(embedded))
        residual = embedded + positions
        for block in self.blocks:
            residual = block(residual)
        return residual @ self.unembed.W_U


class _Weights(nn.Module):
    """Parameters whose names start with `prefix`; which of these there are depends on it."""

    W_E: Tensor
    W_pos: Tensor
    W_U: Tensor
    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor
    W_in: Tensor
    W_out: Tensor

    def __init__(self, shapes: dict[str, tuple[int, ...]], prefix: str) -> None:
        super().__init__()
        for name, shape in shapes.items():
            if name.startswith(prefix):
                self.register_parameter(name.removeprefix(prefix), nn.Parameter(torch.zeros(shape)))


class _Block(nn.Module):
    def __init__(self, shapes: dict[str, tuple[int, ...]], layer: int, d_head: int) -> None:
        super().__init__()
        self.attn = _Attention(shapes, f"blocks.{layer}.attn.", d_head)
        self.hook_resid_pre = HookPoint()
        self.hook_attn_out = HookPoint()
        self.has_mlp = f"blocks.{layer}.mlp.W_in" in shapes
        if self.has_mlp:
            self.hook_resid_mid = HookPoint()
            self.mlp = _MLP(shapes, f"blocks.{layer}.mlp.")
            self.hook_mlp_out = HookPoint()
        self.hook_resid_post = HookPoint()

    def forward(self, residual: Tensor) -> Tensor:
        residual = self.hook_resid_pre(residual)
        residual = residual + self.hook_attn_out(self.attn(residual))
        if self.has_mlp:
            residual = self.hook_resid_mid(residual)
            residual = residual + self.hook_mlp_out(self.mlp(residual))
        return self.hook_resid_post(residual)


class _Attention(_Weights):
    def __init__(self, shapes: dict[str, tuple[int, ...]], prefix: str, d_head: int) -> None:
        super().__init__(shapes, prefix)
        self.scale = d_head**-0.5
        self.hook_q = HookPoint()
        self.hook_k = HookPoint()
        self.hook_v = HookPoint()
        self.hook_attn_scores = HookPoint()
        self.hook_pattern = HookPoint()
        self.hook_z = HookPoint()

    def forward(self, residual: Tensor) -> Tensor:
        n_ctx = residual.shape[1]
        q, k, v = (
            hook(torch.einsum("btd,hde->bthe", residual, weight))
            for hook, weight in ((self.hook_q, self.W_Q), (self.hook_k, self.W_K), (self.hook_v, self.W_V))
        )
        later = torch.full((n_ctx, n_ctx), -torch.inf, device=residual.device).triu(1)
        scores = self.hook_attn_scores(torch.einsum("bqhe,bkhe->bhqk", q, k) * self.scale + later)
        pattern = self.hook_pattern(scores.softmax(-1))
        z = self.hook_z(torch.einsum("bhqk,bkhe->bqhe", pattern, v))
        return torch.einsum("bqhe,hed->bqd", z, self.W_O)


class _MLP(_Weights):
    def __init__(self, shapes: dict[str, tuple[int, ...]], prefix: str) -> None:
        super().__init__(shapes, prefix)
        self.hook_pre = HookPoint()
        self.hook_post = HookPoint()

    def forward(self, residual: Tensor) -> Tensor:
        return self.hook_post(self.hook_pre(residual @ self.W_in).relu()) @ self.W_out
