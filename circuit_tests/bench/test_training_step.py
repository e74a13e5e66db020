"""The training step against the same step through the hooked model, and against its own matrix products.

All three are timed in turn within one run and with the same number of threads, so the ratios hold on a noisy machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from pytest_benchmark.fixture import BenchmarkFixture

from aa_core.gate.throughput import matrix_products, seconds, training_step
from aa_core.model.hooked import HookedAssignAndAdd
from aa_core.task.split import Split
from aa_core.task.training_data import training_batch
from aa_core.training.config import TrainConfig
from aa_core.training.optimisation import initial_state

CONFIG = TrainConfig()
ROUNDS = 12
STEPS_A_ROUND = 10  # of the fast step for one of the hooked one
LEAST_SPEEDUP = {1: 13, 2: 11}

pytestmark = pytest.mark.bench


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


@pytest.mark.parametrize("threads", [1, 2])
def test_training_step(benchmark: BenchmarkFixture, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        fast, hooked, products = training_step(CONFIG), hooked_step(), matrix_products(CONFIG)
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
