"""The exact fast forward pass: vectors of the residual stream held as weights over symbols.

Nothing but attention is nonlinear before the MLP, and only the last position is read. So every vector that the
model needs is a weighted sum of few rows: the *symbols*, `X = [W_E; W_pos]`, and their images under the value
circuits. A sequence's vectors become weights over the `d_vocab + n_ctx` symbols, attention scores become look-ups
in symbol-by-symbol tables, and the matrices act on the tables once a step instead of on every token.

With X1 = X W_V0 W_O0 (what blocks.0 writes for a symbol) and a0, a1 the attention patterns of the two heads:

    blocks.0 scores   q, k     X[q] QK0 X[k]^T, summed over the token and the position symbol of q and of k
    resid at `=`               X[=] + X[last position] + w0 X1           w0: row `=` of a0 over symbols
    blocks.1 scores   k        (resid at `=`) QK1 (X[k] + a0[k] X1)^T
    attention output           w1 X OV1 + w10 X1 OV1                     w1: a1 over symbols, w10: a1 a0 over symbols

The tables are small and use autograd; the part that runs over the batch has its backward written out, since
autograd's bookkeeping costs as much as the mathematics there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from aa_core.model.parameters import Parameters, attention_weights
from aa_core.task.config import TaskConfig


class Tables(NamedTuple):
    """What the batch needs of the parameters.

    Attributes:
        pair_scores: blocks.0 score of (query position, query token, key token).
        row_scores: blocks.0 score of (query token, query position, key position), -inf where the key is later.
        query_scores: blocks.1 score of a query symbol against X and X1; last row: the constant part of the query.
        equals: `X[=] + X[last position]`.
        readout: what w0, w1 and w10 write into the residual stream at `=`.
        w_in: `blocks.1.mlp.W_in`.
        w_out_u: `blocks.1.mlp.W_out @ unembed.W_U`.
        w_u: `unembed.W_U`.
    """

    pair_scores: Float[Tensor, "n_ctx d_vocab d_vocab"]
    row_scores: Float[Tensor, "d_vocab n_ctx n_ctx"]
    query_scores: Float[Tensor, "symbols+1 2*symbols"]
    equals: Float[Tensor, "1 d_model"]
    readout: Float[Tensor, "3*symbols d_model"]
    w_in: Float[Tensor, "d_model d_mlp"]
    w_out_u: Float[Tensor, "d_mlp modulus"]
    w_u: Float[Tensor, "d_model modulus"]


class Activations(NamedTuple):
    """What the model computes for a batch, under TransformerLens's names where there is one.

    Attributes:
        pattern0: `blocks.0.attn.hook_pattern`, of the one head.
        pattern1: the last row (query `=`) of `blocks.1.attn.hook_pattern`.
        weights: w0, w1 and w10 side by side.
        via: blocks.1 score of what blocks.0 writes for each key symbol.
        mixed: `pattern0` applied to `via`.
        resid_mid: `blocks.1.hook_resid_mid` at `=`.
        post: `blocks.1.mlp.hook_post` at `=`.
        logits: at `=`.
    """

    pattern0: Float[Tensor, "batch n_ctx n_ctx"]
    pattern1: Float[Tensor, "batch n_ctx"]
    weights: Float[Tensor, "batch 3*symbols"]
    via: Float[Tensor, "batch n_ctx"]
    mixed: Float[Tensor, "batch n_ctx"]
    resid_mid: Float[Tensor, "batch d_model"]
    post: Float[Tensor, "batch d_mlp"]
    logits: Float[Tensor, "batch modulus"]


def symbol_tables(task: TaskConfig, parameters: Parameters) -> Tables:
    """The tables of a model; differentiable with respect to every parameter."""
    x = torch.cat([parameters["embed.W_E"], parameters["pos_embed.W_pos"]])
    q0, k0, v0, o0 = attention_weights(parameters, 0)
    q1, k1, v1, o1 = attention_weights(parameters, 1)
    scale = q0.shape[1] ** -0.5
    n_vocab = task.d_vocab

    scores0 = (x @ (q0 * scale)) @ (x @ k0).T
    x1 = (x @ v0) @ o0
    both = torch.cat([x, x1])
    equals = (x[task.equals_token] + x[n_vocab + task.equals_position])[None]
    query_scores = (torch.cat([x1, equals]) @ (q1 * scale)) @ (both @ k1).T
    w_u = parameters["unembed.W_U"]
    later = torch.full((task.n_ctx, task.n_ctx), -torch.inf, device=x.device).triu(1)
    tables = Tables(
        pair_scores=scores0[:n_vocab, :n_vocab] + scores0[n_vocab:, None, :n_vocab],
        row_scores=scores0[:n_vocab, None, n_vocab:] + (scores0[n_vocab:, n_vocab:] + later),
        query_scores=query_scores,
        equals=equals,
        readout=torch.cat([x1, (both @ v1) @ o1]),
        w_in=parameters["blocks.1.mlp.W_in"],
        w_out_u=parameters["blocks.1.mlp.W_out"] @ w_u,
        w_u=w_u,
    )
    return Tables(*(table.to(x.dtype) for table in tables))  # products are narrower under autocast


@torch.no_grad()
def forward(tables: Tables, tokens: Int[Tensor, "batch n_ctx"]) -> Activations:
    """Run the model on a batch, without gradients; equal to the hooked model's forward up to rounding."""
    return _forward(tables, tokens, *_score_indices(tables, tokens))


def loss(tables: Tables, tokens: Int[Tensor, "batch n_ctx"], answers: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Mean cross-entropy at `=`, in nats, differentiable with respect to the tables."""
    return _Loss.apply(tokens, answers, *tables)  # pyright: ignore[reportReturnType]


def _score_indices(tables: Tables, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Flat indices into `pair_scores` (one a query and key) and into the rows of `row_scores` (one a query)."""
    n_ctx, n_vocab, _ = tables.pair_scores.shape
    position = torch.arange(n_ctx, device=tokens.device)
    pair = ((position * n_vocab + tokens) * n_vocab)[:, :, None] + tokens[:, None, :]
    return pair.flatten(), (tokens * n_ctx + position).flatten()


def _forward(tables: Tables, tokens: Tensor, pair: Tensor, row: Tensor) -> Activations:
    n, n_ctx = tokens.shape
    n_vocab = tables.row_scores.shape[0]
    symbols = n_vocab + n_ctx

    scores0 = tables.pair_scores.flatten().index_select(0, pair).view(n, n_ctx, n_ctx)
    scores0 += tables.row_scores.view(-1, n_ctx).index_select(0, row).view(n, n_ctx, n_ctx)
    pattern0 = scores0.softmax(-1)

    weights = tables.readout.new_zeros(n, 3 * symbols)
    w0, w1, w10 = weights.split(symbols, dim=1)
    _add_to_symbols(w0, tokens, pattern0[:, -1])
    scores = _matmul(w0, tables.query_scores[:-1], tables.query_scores[-1])
    direct, via = (_at_symbols(part, tokens) for part in scores.split(symbols, dim=1))
    mixed = _matmul(pattern0, via[:, :, None])[:, :, 0]
    pattern1 = (direct + mixed).softmax(-1)
    _add_to_symbols(w1, tokens, pattern1)
    _add_to_symbols(w10, tokens, _apply_row(pattern1, pattern0))

    resid_mid = _matmul(weights, tables.readout, tables.equals)
    post = _matmul(resid_mid, tables.w_in).relu_()
    logits = _matmul(post, tables.w_out_u, _matmul(resid_mid, tables.w_u))
    return Activations(pattern0, pattern1, weights, via, mixed, resid_mid, post, logits)


def _matmul(a: Tensor, b: Tensor, added: Tensor | None = None) -> Tensor:
    """`a @ b + added` in the dtype of `a`, whatever autocast computes it in."""
    return (a @ b if added is None else torch.addmm(added, a, b)).to(a.dtype)


def _at_symbols(values: Tensor, tokens: Tensor) -> Tensor:
    """Value of each place's token symbol plus that of its position symbol: [batch, symbols] to [batch, n_ctx]."""
    n_vocab = values.shape[1] - tokens.shape[1]
    return values[:, :n_vocab].gather(1, tokens) + values[:, n_vocab:]


def _add_to_symbols(target: Tensor, tokens: Tensor, values: Tensor) -> None:
    """The transpose of `_at_symbols`, into a zeroed `target`."""
    n_vocab = target.shape[1] - tokens.shape[1]
    target[:, :n_vocab].scatter_add_(1, tokens, values)
    target[:, n_vocab:] = values


def _apply_row(row: Tensor, pattern: Tensor) -> Tensor:
    """`row @ pattern` for each sequence: [batch, key], [batch, key, key'] to [batch, key']."""
    return _matmul(row[:, None], pattern)[:, 0]


class _Loss(torch.autograd.Function):
    """Mean cross-entropy of a batch as a function of the tables, with its backward written out."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, answers: Tensor, *parts: Tensor) -> Tensor:
        tables = Tables(*parts)
        pair, row = _score_indices(tables, tokens)
        activations = _forward(tables, tokens, pair, row)
        log_probabilities = activations.logits.log_softmax(-1)
        ctx.save_for_backward(tokens, answers, pair, row, log_probabilities, *activations, *tables)
        device = tokens.device.type
        ctx.autocast = (device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device))
        return F.nll_loss(log_probabilities, answers)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        device, dtype, enabled = ctx.autocast
        with torch.autocast(device, dtype, enabled):
            return None, None, *_table_gradients(grad_outputs[0], *ctx.saved_tensors)


def _table_gradients(
    d_loss: Tensor, tokens: Tensor, answers: Tensor, pair: Tensor, row: Tensor, log_probabilities: Tensor, *rest: Tensor
) -> Tables:
    """Gradients of the loss; `d_x` is the gradient with respect to `x`."""
    activations = Activations(*rest[: len(Activations._fields)])
    tables = Tables(*rest[len(Activations._fields) :])
    pattern0, pattern1, weights, via, mixed, resid_mid, post, _ = activations
    n, n_ctx = tokens.shape
    symbols = tables.row_scores.shape[0] + n_ctx

    d_logits = log_probabilities.exp()
    d_logits[torch.arange(n, device=tokens.device), answers] -= 1
    d_logits *= d_loss / n
    d_pre = torch.ops.aten.threshold_backward(_matmul(d_logits, tables.w_out_u.T), post, 0)
    d_resid_mid = _matmul(d_pre, tables.w_in.T, _matmul(d_logits, tables.w_u.T))
    d_weights = _matmul(d_resid_mid, tables.readout.T)
    d_w0, d_w1, d_w10 = d_weights.split(symbols, dim=1)

    # blocks.1: pattern1 feeds w1 and, through pattern0, w10.
    d_row10 = _at_symbols(d_w10, tokens)
    mixed10 = _matmul(pattern0, d_row10[:, :, None])[:, :, 0]
    d_pattern1 = _at_symbols(d_w1, tokens) + mixed10
    d_scores1 = pattern1 * (d_pattern1 - (d_pattern1 * pattern1).sum(-1, keepdim=True))
    d_scores = weights.new_zeros(n, 2 * symbols)
    d_direct, d_via = d_scores.split(symbols, dim=1)
    _add_to_symbols(d_direct, tokens, d_scores1)
    _add_to_symbols(d_via, tokens, _apply_row(d_scores1, pattern0))
    w0 = weights[:, :symbols]
    d_row0 = _at_symbols(_matmul(d_scores, tables.query_scores[:-1].T, d_w0), tokens)

    # blocks.0: the gradient of pattern0 is pattern1 (x) d_row10 + d_scores1 (x) via, plus d_row0 in the row of `=`.
    # A softmax's backward subtracts each row's mean under the pattern, known here without another pass.
    row_mean = pattern1 * mixed10 + d_scores1 * mixed
    d_scores0 = _matmul(
        torch.stack([pattern1, d_scores1, -row_mean], dim=-1), torch.stack([d_row10, via, torch.ones_like(via)], dim=1)
    )
    d_scores0[:, -1] += d_row0 - (d_row0 * pattern0[:, -1]).sum(-1, keepdim=True)
    d_scores0 *= pattern0
    flat = d_scores0.flatten()
    d_pair = torch.bincount(pair, flat, minlength=tables.pair_scores.numel())
    d_rows = torch.zeros_like(tables.row_scores).view(-1, n_ctx).index_add_(0, row, flat.view(-1, n_ctx))

    return Tables(
        pair_scores=d_pair.view_as(tables.pair_scores).to(flat.dtype),
        row_scores=d_rows.view_as(tables.row_scores),
        query_scores=torch.cat([_matmul(w0.T, d_scores), d_scores.sum(0, keepdim=True)]),
        equals=d_resid_mid.sum(0, keepdim=True),
        readout=_matmul(weights.T, d_resid_mid),
        w_in=_matmul(resid_mid.T, d_pre),
        w_out_u=_matmul(post.T, d_logits),
        w_u=_matmul(resid_mid.T, d_logits),
    )
