"""Speed of training as a ratio that holds on a busy machine: a training step against its own matrix products."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from aa_core.runs.environment import torch_threads
from aa_core.task.split import Split
from aa_core.training.config import TrainConfig
from aa_core.training.optimisation import advance, initial_state

ROUNDS, STEPS_A_ROUND = 9, 10


def training_step(config: TrainConfig) -> Callable[[], object]:
    """One update as training does it, sampling included."""
    state, split = initial_state(config, torch.device("cpu")), Split(config.task, config.split)
    return lambda: advance(state, config, split, state.step + 1)


def matrix_products(config: TrainConfig) -> Callable[[], list[Tensor]]:
    """The products of an update's forward and backward, tables and batch, with nothing between them."""
    task, model, n = config.task, config.model, config.batch_size
    symbols = task.d_vocab + task.n_ctx
    d, h, hidden, out = model.d_model, model.d_head, model.d_mlp, task.modulus
    forward = [
        *[(symbols, d, h)] * 3,  # X times W_Q, W_K and W_V of blocks.0
        (symbols, h, symbols),
        (symbols, h, d),
        (symbols + 1, d, h),
        *[(2 * symbols, d, h)] * 2,  # W_K and W_V of blocks.1
        (symbols + 1, h, 2 * symbols),
        (2 * symbols, h, d),
        (hidden, d, out),
        (n, symbols, 2 * symbols),
        (n, 3 * symbols, d),
        (n, d, hidden),
        (n, hidden, out),
        (n, d, out),
    ]
    # The gradients of a product A B are two products of the same size: dC B^T and A^T dC.
    sizes = [size for a, b, c in forward for size in ((a, b, c), (a, c, b), (b, a, c))]
    operands = [(torch.randn(a, b), torch.randn(b, c)) for a, b, c in sizes]
    return lambda: [left @ right for left, right in operands]


def seconds(function: Callable[[], object], calls: int) -> float:
    """Mean seconds of a call."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def step_over_products(config: TrainConfig) -> float:
    """Time of an update in units of its own matrix products, on one thread: the median of rounds taken in turn."""
    with torch_threads(1):
        step, products = training_step(config), matrix_products(config)
        rounds = [(seconds(step, STEPS_A_ROUND), seconds(products, STEPS_A_ROUND)) for _ in range(ROUNDS)]
    return statistics.median(whole / least for whole, least in rounds[1:])  # the first one warms up
