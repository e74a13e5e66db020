"""The exact forward pass with the residual stream in the open, for ablations and patches.

Only what the answer depends on is computed: every position up to blocks.1's keys and values, the last position from
there on. `blocks.0` has no MLP, so what it writes is its pattern times one vector a symbol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aa_core.circuits.subject import Run, Subject
from aa_core.model.parameters import attention_weights
from aa_core.task.sequences import Sequences

Edit = Tensor | Callable[[Tensor], Tensor] | None


class Stream(NamedTuple):
    """What the model computes, under TransformerLens's names; the head dimension is dropped.

    Attributes:
        sequences: what it was run on.
        pattern0: `blocks.0.attn.hook_pattern`.
        attn_out0: `blocks.0.hook_attn_out`.
        resid_pre1: `blocks.1.hook_resid_pre`.
        q_input1: `blocks.1.hook_q_input`, the stream as blocks.1's query reads it, at `=`.
        k_input1: `blocks.1.hook_k_input`.
        v_input1: `blocks.1.hook_v_input`.
        pattern1: `blocks.1.attn.hook_pattern`, the row of `=`.
        attn_out1: `blocks.1.hook_attn_out` at `=`.
        resid_mid1: `blocks.1.hook_resid_mid` at `=`.
        mlp_in1: `blocks.1.hook_mlp_in` at `=`, the stream as the MLP reads it.
        mlp_post1: `blocks.1.mlp.hook_post` at `=`.
        mlp_out1: `blocks.1.hook_mlp_out` at `=`.
        resid_post1: `blocks.1.hook_resid_post` at `=`.
        logits: at `=`.
    """

    sequences: Sequences
    pattern0: Float[Tensor, "n n_ctx n_ctx"]
    attn_out0: Float[Tensor, "n n_ctx d_model"]
    resid_pre1: Float[Tensor, "n n_ctx d_model"]
    q_input1: Float[Tensor, "n d_model"]
    k_input1: Float[Tensor, "n n_ctx d_model"]
    v_input1: Float[Tensor, "n n_ctx d_model"]
    pattern1: Float[Tensor, "n n_ctx"]
    attn_out1: Float[Tensor, "n d_model"]
    resid_mid1: Float[Tensor, "n d_model"]
    mlp_in1: Float[Tensor, "n d_model"]
    mlp_post1: Float[Tensor, "n d_mlp"]
    mlp_out1: Float[Tensor, "n d_model"]
    resid_post1: Float[Tensor, "n d_model"]
    logits: Float[Tensor, "n modulus"]

    @property
    def predictions(self) -> Int[Tensor, " n"]:
        """The class with the largest logit."""
        return self.logits.argmax(-1)

    @property
    def correct(self) -> Bool[Tensor, " n"]:
        """Whether each answer is that of the sequence."""
        return self.predictions == torch.from_numpy(self.sequences.answers)


class Symbols(NamedTuple):
    """Vectors of tokens and positions before and after blocks.0's OV circuit.

    Attributes:
        tokens: `W_E`.
        positions: `W_pos`.
        carried_tokens: `W_E W_V W_O` of blocks.0: what it writes for a key that holds the token, at weight 1.
        carried_positions: `W_pos W_V W_O` of blocks.0.
    """

    tokens: Float[Tensor, "d_vocab d_model"]
    positions: Float[Tensor, "n_ctx d_model"]
    carried_tokens: Float[Tensor, "d_vocab d_model"]
    carried_positions: Float[Tensor, "n_ctx d_model"]


def symbols(subject: Subject) -> Symbols:
    """The vectors from which everything before blocks.1 is summed."""
    _, _, v0, o0 = attention_weights(subject.parameters, 0)
    tokens, positions = subject.parameters["embed.W_E"], subject.parameters["pos_embed.W_pos"]
    return Symbols(tokens, positions, tokens @ v0 @ o0, positions @ v0 @ o0)


def intervened(
    subject: Subject,
    run: Run,
    *,
    pattern0: Edit = None,
    attn_out0: Edit = None,
    q_input1: Edit = None,
    k_input1: Edit = None,
    v_input1: Edit = None,
    pattern1: Edit = None,
    attn_out1: Edit = None,
    mlp_in1: Edit = None,
    resid_post1: Edit = None,
) -> Stream:
    """Run the model with activations replaced; the names are those of `Stream`.

    Each edit is the tensor to use, or a function from the tensor that this run computed at that place (after the
    edits before it, as with hooks) to the one to use; it must not write into its argument. Differentiable with
    respect to the tensors given.

    Args:
        subject: the model.
        run: the sequences, with the model's clean pattern of blocks.0.
        pattern0: all rows of blocks.0's pattern; rows need not sum to 1.
        attn_out0: what blocks.0 writes.
        q_input1: the stream that blocks.1's query reads at `=`.
        k_input1: the stream that blocks.1's keys read.
        v_input1: the stream that blocks.1's values read.
        pattern1: the row of `=` of blocks.1's pattern.
        attn_out1: what blocks.1's attention writes at `=`.
        mlp_in1: the stream that the MLP reads at `=`; the skip past it is not edited.
        resid_post1: the stream that is unembedded at `=`.
    """
    x = symbols(subject)
    q1, k1, v1, o1 = attention_weights(subject.parameters, 1)
    w_in, w_out, w_u = (subject.parameters[name] for name in ("blocks.1.mlp.W_in", "blocks.1.mlp.W_out", "unembed.W_U"))
    tokens = torch.from_numpy(run.sequences.tokens)

    pattern0_ = _edited(run.activations.pattern0, pattern0)
    attn_out0_ = _edited(pattern0_ @ (x.carried_tokens[tokens] + x.carried_positions), attn_out0)
    resid_pre1 = x.tokens[tokens] + x.positions + attn_out0_

    q_input = _edited(resid_pre1[:, -1], q_input1)
    k_input = _edited(resid_pre1, k_input1)
    v_input = _edited(resid_pre1, v_input1)
    query = q_input @ (q1 @ k1.T * q1.shape[1] ** -0.5)
    pattern1_ = _edited((k_input @ query[:, :, None])[:, :, 0].softmax(-1), pattern1)
    attn_out1_ = _edited((pattern1_[:, None] @ v_input)[:, 0] @ v1 @ o1, attn_out1)

    resid_mid = resid_pre1[:, -1] + attn_out1_
    mlp_in = _edited(resid_mid, mlp_in1)
    mlp_post = (mlp_in @ w_in).relu()
    mlp_out = mlp_post @ w_out
    resid_post = _edited(resid_mid + mlp_out, resid_post1)
    return Stream(
        sequences=run.sequences,
        pattern0=pattern0_,
        attn_out0=attn_out0_,
        resid_pre1=resid_pre1,
        q_input1=q_input,
        k_input1=k_input,
        v_input1=v_input,
        pattern1=pattern1_,
        attn_out1=attn_out1_,
        resid_mid1=resid_mid,
        mlp_in1=mlp_in,
        mlp_post1=mlp_post,
        mlp_out1=mlp_out,
        resid_post1=resid_post,
        logits=resid_post @ w_u,
    )


def _edited(value: Tensor, edit: Edit) -> Tensor:
    if edit is None:
        return value
    return edit if isinstance(edit, Tensor) else edit(value)


def half_on(positions: Int[Tensor, "n 2"], n_ctx: int) -> Float[Tensor, "n n_ctx"]:
    """A pattern's row with half its weight on each of two positions."""
    row = torch.zeros(len(positions), n_ctx)
    return row.scatter_add_(1, positions, torch.full(positions.shape, 0.5))


def without_edges(pattern: Float[Tensor, "*n keys"], edges: Bool[Tensor, "*n keys"]) -> Float[Tensor, "*n keys"]:
    """Patterns with the weights of the given edges set to 0 and each row scaled back to the sum 1.

    A row that has nothing else becomes 0.
    """
    kept = pattern.masked_fill(edges, 0)
    return kept / kept.sum(-1, keepdim=True).clamp_min(torch.finfo(pattern.dtype).tiny)


def with_added_score(pattern: Float[Tensor, "*n keys"], added: Float[Tensor, "*n keys"]) -> Float[Tensor, "*n keys"]:
    """Patterns as they are when `added` is added to the scores (in nats, after the division by sqrt(d_head))."""
    raised = pattern * added.exp()
    return raised / raised.sum(-1, keepdim=True)
