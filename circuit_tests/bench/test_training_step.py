"""The training step against the same step through the hooked model, and against its own matrix products.

All three are timed in turn within one run and with the same number of threads, so the ratios hold on a noisy machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from pytest_benchmark.fixture import BenchmarkFixture

from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.task.split import Split
from aa_core.task.training_data import training_batch
from aa_core.training.config import TrainConfig
from aa_core.training.optimisation import advance, initial_state

CONFIG = TrainConfig()
ROUNDS = 12
STEPS_A_ROUND = 10  # of the fast step for one of the hooked one
LEAST_SPEEDUP = {1: 13, 2: 11}

pytestmark = pytest.mark.bench


def fast_step() -> Callable[[], object]:
    """One update as training does it, sampling included."""
    state, split = initial_state(CONFIG, torch.device("cpu")), Split(CONFIG.task, CONFIG.split)
    return lambda: advance(state, CONFIG, split, state.step + 1)


def hooked_step() -> Callable[[], object]:
    """The same update through the hooked model's forward, autograd and the same optimiser."""
    start, split = initial_state(CONFIG, torch.device("cpu")), Split(CONFIG.task, CONFIG.split)
    model = HookedAssignAndAdd(CONFIG.task, CONFIG.model, start.parameters)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=CONFIG.weight_decay, fused=True)

    def step() -> None:
        batch = training_batch(split, CONFIG.seed, 0, CONFIG.batch_size)
        optimizer.zero_grad()
        logits = model(torch.from_numpy(batch.tokens))[:, -1]
        F.cross_entropy(logits, torch.from_numpy(batch.answers)).backward()
        optimizer.step()

    return step


def matrix_products() -> Callable[[], object]:
    """The products of the fast step's forward and backward, tables and batch, with nothing between them."""
    task, model, n = CONFIG.task, CONFIG.model, CONFIG.batch_size
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


@pytest.mark.parametrize("threads", [1, 2])
def test_training_step(benchmark: BenchmarkFixture, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        fast, hooked, products = fast_step(), hooked_step(), matrix_products()
        for warm_up in (fast, hooked, products):
            seconds(warm_up, 2)
        rounds = [
            (seconds(fast, STEPS_A_ROUND), seconds(hooked, 1), seconds(products, STEPS_A_ROUND)) for _ in range(ROUNDS)
        ]
        benchmark.pedantic(fast, rounds=ROUNDS, iterations=STEPS_A_ROUND)
    finally:
        torch.set_num_threads(before)
    speedup = statistics.median(slow / quick for quick, slow, _ in rounds)
    over_products = statistics.median(quick / least for quick, _, least in rounds)
    benchmark.extra_info.update(speedup=round(speedup, 2), over_products=round(over_products, 2))
    print(
        f"\n{threads} thread(s): hooked step / training step = {speedup:.1f}, "
        f"training step / its own matrix products = {over_products:.2f}"
    )
    assert speedup >= LEAST_SPEEDUP[threads], f"the training step is only {speedup:.1f} times faster"
