"""The training loop: it advances a state and says what there is to keep, without touching a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aa_core.errors import InputError
from aa_core.model.parameters import Parameters
from aa_core.task.split import Split
from aa_core.training.config import TrainConfig
from aa_core.training.optimisation import TrainState, advance

Row = dict[str, float]
"""A row of metrics: `step`, `loss` (mean training loss in nats since the last row), and what was measured."""

Measure = Callable[[Parameters], dict[str, float]]
"""Numbers by name, a pure function of the weights."""


@dataclass(frozen=True)
class Milestone:
    """A step at which a row of metrics is due, or a checkpoint, or both.

    Attributes:
        step: updates done.
        row: the row of metrics, where one is due.
    """

    step: int
    row: Row | None


def logs_row(config: TrainConfig, step: int) -> bool:
    """Whether a row of metrics is due after `step` updates: every `log_every`, and after the last one."""
    return step > 0 and (step % config.log_every == 0 or step == config.steps)


def train(config: TrainConfig, state: TrainState, measure: Measure) -> Iterator[Milestone]:
    """Advance `state` in place to the last step, pausing at every milestone for the caller to record it.

    A state at which a row is due (or of step 0) holds everything that decides the rest: training that goes on from
    such a state, restored, ends with the same bits as training that was never interrupted, on the same machine and
    with the same number of threads. On a GPU sums are in no fixed order, so there the bits differ from run to run.

    Args:
        config: the run.
        state: where to start, of step 0 or of a step with a row.
        measure: what to measure for each row.

    Raises:
        InputError: the loss or a weight is not finite any more.
    """
    split = Split(config.task, config.split)
    loss_sum, last_row = 0.0, state.step
    if state.step == 0:
        yield Milestone(0, None)
    for until in range(state.step + 1, config.steps + 1):
        is_row = logs_row(config, until)
        if not is_row and not config.keeps_checkpoint(until):
            continue
        start = state.step
        loss_sum += _advance(state, config, split, until) * (until - start)
        row = None
        if is_row:
            weights = {name: parameter.detach() for name, parameter in state.parameters.items()}
            row = {"step": until, "loss": loss_sum / (until - last_row), **measure(weights)}
            loss_sum, last_row = 0.0, until
        yield Milestone(until, row)


def _advance(state: TrainState, config: TrainConfig, split: Split, until: int) -> float:
    try:
        loss = advance(state, config, split, until)
        for name, parameter in state.parameters.items():
            if not parameter.isfinite().all():  # the loss tells only of the weights before the last update
                raise FloatingPointError(f"{name} is not finite after step {until}: lower the learning rate")
    except FloatingPointError as error:
        sizes = f"learning_rate is {config.learning_rate}, init_scale {config.init_scale}"
        raise InputError(f"training diverged, {error} ({sizes})") from error
    return loss
