"""Invariants of the initial weights, of the updates and of resuming."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from aa_core.gate.invariant import Finding, Invariant, first_fault
from aa_core.gate.setting import Setting
from aa_core.model import symbol_space
from aa_core.task.sequences import Sequences
from aa_core.task.split import Split
from aa_core.task.training_data import training_batch
from aa_core.training import optimisation
from aa_core.training.optimisation import TrainState, advance, initial_state, restored_state, state_tensors

CPU = torch.device("cpu")
STEPS = 3


def initial_weights(setting: Setting) -> Finding:
    """Mean and spread of the initial weights, and how they depend on the seed."""
    weights = initial_state(setting.config, CPU).parameters
    other = initial_state(setting.with_config(seed=setting.config.seed + 1), CPU).parameters
    again = initial_state(setting.config, CPU).parameters
    std = setting.config.init_scale / setting.config.model.d_model**0.5

    def faults() -> Iterator[str]:
        for name, weight in weights.items():
            tolerance = 6 / weight.numel() ** 0.5  # six standard errors
            if not abs(weight.std().item() / std - 1) < tolerance or not abs(weight.mean().item() / std) < tolerance:
                yield f"{name} has mean {weight.mean():.2g} and std {weight.std():.3g}, expected 0 and {std:.3g}"
            if not torch.equal(weight, again[name]):
                yield f"{name} differs when it is drawn again"
            if torch.equal(weight, other[name]):
                yield f"{name} is the same for another seed"

    return first_fault(faults(), f"{len(weights)} parameters of std {std:.3g}")


def weight_decay(setting: Setting) -> Finding:
    """What one update does to the weights where the gradient is zero."""
    config = setting.with_config(weight_decay=setting.config.weight_decay or 0.02)
    state = initial_state(config, CPU)
    before = _copied(state)
    with mock.patch.object(symbol_space, "loss", _loss_without_gradient):
        advance(state, config, setting.split, 1)
    expected = config.learning_rate_at(0) * config.weight_decay
    shrunk = {
        name: 1 - float((weight.detach().double() * before[name]).sum() / (before[name].double() ** 2).sum())
        for name, weight in state.parameters.items()
    }

    def faults() -> Iterator[str]:
        for name, share in shrunk.items():
            if not abs(share / expected - 1) < 0.01:
                yield f"{name} shrinks by {share:.3g} a step, expected {expected:.3g}"

    return first_fault(faults(), f"{len(shrunk)} parameters shrink by {expected:.3g} a step")


def adamw(setting: Setting) -> Finding:
    """A few updates against AdamW written out."""
    config = setting.config
    state = initial_state(config, CPU)
    weights = {name: parameter.detach().double().requires_grad_() for name, parameter in state.parameters.items()}
    moments = {name: (torch.zeros_like(weight), torch.zeros_like(weight)) for name, weight in weights.items()}
    start = _copied(state)
    advance(state, config, setting.split, STEPS)
    for step in range(STEPS):
        rate = config.learning_rate_at(step)
        batch = training_batch(setting.split, config.seed, step, config.batch_size)
        tables = symbol_space.symbol_tables(config.task, weights)
        loss = symbol_space.loss(tables, torch.from_numpy(batch.tokens), torch.from_numpy(batch.answers))
        gradients = torch.autograd.grad(torch.as_tensor(loss), list(weights.values()))
        for (name, weight), gradient in zip(list(weights.items()), gradients, strict=True):
            first, second = moments[name]
            first = config.beta1 * first + (1 - config.beta1) * gradient
            second = config.beta2 * second + (1 - config.beta2) * gradient**2
            moments[name] = first, second
            first, second = first / (1 - config.beta1 ** (step + 1)), second / (1 - config.beta2 ** (step + 1))
            kept = weight.detach() * (1 - rate * config.weight_decay)
            weights[name] = (kept - rate * first / (second.sqrt() + config.eps)).requires_grad_()
    errors = {
        name: float((parameter - weights[name]).detach().norm() / (weights[name] - start[name]).detach().norm())
        for name, parameter in state.parameters.items()
    }

    def faults() -> Iterator[str]:
        for name, error in errors.items():
            if not error < 0.01:
                yield f"{name} is off by {error:.1%} of its way after {STEPS} steps"

    return first_fault(faults(), f"{STEPS} steps to {max(errors.values()):.1e} of the way")


def learning_rate(setting: Setting) -> Finding:
    """Learning rates by step, as the config gives them and as updates use them."""
    config = setting.with_config(decay_steps=setting.config.decay_steps or setting.config.steps // 4)
    first_decayed = config.steps - config.decay_steps
    steps = (0, first_decayed - 1, first_decayed + 1, config.steps - 1)

    def faults() -> Iterator[str]:
        for step in range(config.steps):
            expected = config.learning_rate * min(1, (config.steps - step) / config.decay_steps)
            if not abs(config.learning_rate_at(step) / expected - 1) < 1e-9:
                yield f"the rate after {step} steps is {config.learning_rate_at(step):.3g}, expected {expected:.3g}"
        for step in steps:
            state = initial_state(config, CPU)
            state.step = step
            advance(state, config, setting.split, step + 1)
            used, expected = state.optimizer.param_groups[0]["lr"], config.learning_rate_at(step)
            if used != expected:
                yield f"the update after {step} steps uses {used:.3g}, expected {expected:.3g}"

    return first_fault(faults(), f"{config.learning_rate:g}, to 0 from step {first_decayed:,} to {config.steps:,}")


def data_order(setting: Setting) -> Finding:
    """The seed, number and size of the batches that updates ask for."""
    config, asked = setting.config, []

    def noting(split: Split, seed: int, index: int, size: int) -> Sequences:
        asked.append((seed, index, size))
        return training_batch(split, seed, index, size)

    state = initial_state(config, CPU)
    state.step = 2
    with mock.patch.object(optimisation, "training_batch", noting):
        advance(state, config, setting.split, 2 + STEPS)
    expected = [(config.seed, index, config.batch_size) for index in range(2, 2 + STEPS)]
    return Finding(asked == expected, f"(seed, number, size) {asked}, expected {expected}")


def held_out_guard(setting: Setting) -> Finding:
    """Whether an update takes a batch with one held-out pair."""
    config = setting.config
    batch = training_batch(setting.split, config.seed, 0, config.batch_size)
    values = batch.values.copy()
    values[-1] = np.argwhere(~setting.split.seen)[0]
    tampered = Sequences(batch.tokens, batch.answers, values, batch.variables, batch.sources)
    with mock.patch.object(optimisation, "training_batch", return_value=tampered):
        try:
            advance(initial_state(config, CPU), config, setting.split, 1)
        except RuntimeError as error:
            return Finding("held-out pair" in str(error), f"refused: {error}")
    return Finding(False, f"a batch with the held-out pair {tuple(map(int, values[-1]))} is trained on")


def resume(setting: Setting) -> Finding:
    """Weights of an interrupted run, restored from what is saved, against those of the same run uninterrupted."""
    config = setting.config
    whole = initial_state(config, CPU)
    advance(whole, config, setting.split, STEPS)
    saved = {name: tensor.clone() for name, tensor in state_tensors(whole).items()}
    advance(whole, config, setting.split, 2 * STEPS)
    restored = restored_state(config, saved, STEPS, CPU)
    advance(restored, config, setting.split, 2 * STEPS)
    differences = {
        name: float((tensor - state_tensors(restored)[name]).abs().max())
        for name, tensor in state_tensors(whole).items()
    }

    def faults() -> Iterator[str]:
        for name, difference in differences.items():
            if difference:
                yield f"{name} differs by up to {difference:.1e}, {STEPS} steps after resuming"

    return first_fault(faults(), f"{len(differences)} tensors equal to the bit, {STEPS} steps after resuming")


def learns(setting: Setting) -> Finding:
    """The loss of a short run."""
    config = setting.with_config(steps=150, batch_size=64, learning_rate=2e-2, decay_steps=40, weight_decay=0.02)
    state, chance = initial_state(config, CPU), float(np.log(config.task.modulus))
    first = advance(state, config, setting.split, 5)
    advance(state, config, setting.split, config.steps - 20)
    last = advance(state, config, setting.split, config.steps)
    ok = abs(first / chance - 1) < 0.2 and last < 0.75 * chance
    return Finding(ok, f"loss {first:.2f}, then {last:.2f} after {config.steps} steps; chance {chance:.2f}")


def _copied(state: TrainState) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in state.parameters.items()}


def _loss_without_gradient(tables: symbol_space.Tables, tokens: Tensor, answers: Tensor) -> Tensor:
    """0, with a gradient of 0 for every parameter; infinite entries of the tables left out."""
    return torch.stack([(table.nan_to_num(neginf=0) * 0).sum() for table in tables]).sum()


INVARIANTS = (
    Invariant("initial/weights", "initial weights have the recipe's scale and depend on the seed", initial_weights),
    Invariant("update/weight-decay", "without a gradient every weight shrinks by 1 - lr * decay", weight_decay),
    Invariant("update/adamw", "an update is AdamW's", adamw),
    Invariant("update/learning-rate", "the learning rate follows the schedule", learning_rate),
    Invariant("update/data-order", "update n uses batch n of the run's seed", data_order),
    Invariant("update/held-out-guard", "an update refuses a held-out pair", held_out_guard),
    Invariant("update/resume", "a resumed run has the bits of one that was never interrupted", resume),
)

SHORT_RUN = Invariant("training/learns", "the loss of a short run of a tiny task falls", learns)
