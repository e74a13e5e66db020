"""The updates themselves: what this module imports determines a run's weights, and its hash is part of their key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from aa_core.model import symbol_space
from aa_core.model.config import parameter_shapes
from aa_core.model.parameters import initial_parameters
from aa_core.task.split import Split
from aa_core.task.training_data import training_batch
from aa_core.training.config import TrainConfig

MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass
class TrainState:
    """Weights and AdamW's moments after `step` updates."""

    parameters: dict[str, Tensor]
    optimizer: torch.optim.AdamW
    step: int


def initial_state(config: TrainConfig, device: torch.device) -> TrainState:
    """The state before the first update; the weights depend on the seed alone, not on the device."""
    weights = initial_parameters(config.task, config.model, config.init_scale, config.seed)
    return _state(config, {name: weight.to(device) for name, weight in weights.items()}, 0)


def _state(config: TrainConfig, weights: dict[str, Tensor], step: int) -> TrainState:
    parameters = {name: weight.requires_grad_(True) for name, weight in weights.items()}
    optimizer = torch.optim.AdamW(
        list(parameters.values()),
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=True,
    )
    return TrainState(parameters, optimizer, step)


def state_tensors(state: TrainState) -> dict[str, Tensor]:
    """Everything that `restored_state` needs, by name: weights, and moments as `exp_avg.NAME`."""
    tensors = dict(state.parameters)
    for name, parameter in state.parameters.items():
        moments = state.optimizer.state.get(parameter, {})
        for moment in MOMENTS:
            tensors[f"{moment}.{name}"] = moments.get(moment, torch.zeros_like(parameter))
    return {name: tensor.detach() for name, tensor in tensors.items()}


def restored_state(config: TrainConfig, tensors: dict[str, Tensor], step: int, device: torch.device) -> TrainState:
    """The inverse of `state_tensors`, whatever the order of `tensors`."""
    tensors = {name: tensor.to(device).clone() for name, tensor in tensors.items()}
    weights = {name: tensors[name] for name in parameter_shapes(config.task, config.model)}
    state = _state(config, weights, step)
    for name, parameter in state.parameters.items():
        moments = {moment: tensors[f"{moment}.{name}"] for moment in MOMENTS}
        state.optimizer.state[parameter] = {"step": torch.tensor(float(step), device=device), **moments}
    return state


def advance(state: TrainState, config: TrainConfig, split: Split, until: int) -> float:
    """Update `state` in place up to step `until`; the mean training loss of these steps, in nats.

    Raises:
        RuntimeError: a batch holds a pair that the split holds out.
        FloatingPointError: the loss is not finite any more.
    """
    device = next(iter(state.parameters.values())).device
    total, start = 0.0, state.step
    while state.step < until:
        batch = training_batch(split, config.seed, state.step, config.batch_size)
        if not split.seen[batch.values[:, 0], batch.values[:, 1]].all():
            raise RuntimeError("the sampler drew a held-out pair for training")
        tokens = torch.from_numpy(batch.tokens).to(device)
        answers = torch.from_numpy(batch.answers).to(device)
        state.optimizer.param_groups[0]["lr"] = config.learning_rate_at(state.step)
        state.optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            loss = symbol_space.loss(symbol_space.symbol_tables(split.task, state.parameters), tokens, answers)
        cast(Tensor, loss).backward()
        state.optimizer.step()
        state.step += 1
        total += loss.item()
    mean = total / max(1, until - start)
    if mean != mean or mean == float("inf"):
        raise FloatingPointError(f"the loss is {mean} after step {state.step}: lower the learning rate")
    return mean
