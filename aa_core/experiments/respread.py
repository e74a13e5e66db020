"""Does a run get stuck because its variables collapse? Change their spread early in training and train on.

From one state of a run several branches go on with the same data, each after one change of the variable embeddings or
of the recipe, the optimiser's moments kept unless a branch says otherwise. If collapse held binding back, branches
that start collapsed would bind later than the unchanged one or never, and branches with a spread given back sooner.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from aa_core.circuits.accuracy import full_prefix_accuracy
from aa_core.circuits.identity import identity_z
from aa_core.circuits.state import diagnose, embedding_spread, unrestricted_letters, variable_spread
from aa_core.circuits.subject import Subject
from aa_core.task.sampling import Kind
from aa_core.task.split import Split
from aa_core.training.config import TrainConfig
from aa_core.training.loop import train
from aa_core.training.optimisation import MOMENTS, TrainState, initial_state, restored_state, state_tensors

SHRUNK = 0.1
FASTER = 3.0
EMBEDDINGS = "embed.W_E"

Letters = Float[Tensor, "letters d_model"]


@dataclass(frozen=True)
class Branch:
    """One way to go on.

    Attributes:
        name: what it is called.
        statement: what is changed.
        embeddings: new variable embeddings from the old ones, the split and the config.
        forgets: whether the moments of the variable embeddings start at 0. AdamW corrects for moments that start at 0
            by the steps of the whole run, so that this makes updates of these rows up to 6 times larger at first, and
            twice for some hundred steps; `forgetful` is the control for that.
        speed: factor on the learning rate.
    """

    name: str
    statement: str
    embeddings: Callable[[Letters, Split, TrainConfig], Letters]
    forgets: bool = False
    speed: float = 1.0


@dataclass(frozen=True)
class Point:
    """A branch at a step.

    Attributes:
        branch: its name.
        step: updates done.
        state: the state of the model.
        spread: `variable_spread`, of what blocks.0 writes for the variables.
        embedding_spread: the same of the variable embeddings themselves.
        identity_z: `identity_z` of blocks.1.
        accuracy: on full prefixes, by kind.
    """

    branch: str
    step: int
    state: str
    spread: float
    embedding_spread: float
    identity_z: float
    accuracy: Mapping[str, float]


def _unchanged(letters: Letters, split: Split, config: TrainConfig) -> Letters:
    return letters


def _shrunk(letters: Letters, split: Split, config: TrainConfig) -> Letters:
    return letters.mean(0) + SHRUNK * (letters - letters.mean(0))


def _merged(letters: Letters, split: Split, config: TrainConfig) -> Letters:
    alike = torch.from_numpy(unrestricted_letters(split))
    merged = letters.clone()
    merged[alike] = letters[alike].mean(0)
    return merged


def _fresh(letters: Letters, split: Split, config: TrainConfig) -> Letters:
    generator = torch.Generator().manual_seed(config.seed + 1)
    return torch.randn(letters.shape, generator=generator) * config.init_scale / config.model.d_model**0.5


BRANCHES: Mapping[str, Branch] = {
    branch.name: branch
    for branch in (
        Branch("unchanged", "the run as it is", _unchanged),
        Branch("shrunk", "every variable's deviation from the mean of all is divided by 10", _shrunk),
        Branch("merged", "the letters that training puts on both sides are set to their mean", _merged),
        Branch("fresh", "the variables are drawn anew as at step 0, their moments set to 0", _fresh, forgets=True),
        Branch("forgetful", "the moments of the variables are set to 0, and nothing else", _unchanged, forgets=True),
        Branch("faster", "the learning rate is tripled", _unchanged, speed=FASTER),
    )
}


def branch_points(
    config: TrainConfig, start: int, until: int, branches: Sequence[Branch], every: int = 200
) -> Iterator[Point]:
    """Train a run to `start`, and every branch from there to `until`; a pure function of its arguments.

    Args:
        config: the run.
        start: step at which the branches part, a multiple of `every`.
        until: last step, likewise.
        branches: the ways to go on.
        every: steps between two points of a branch.

    Raises:
        InputError: training diverged.
    """
    config = dataclasses.replace(config, log_every=every)
    state = initial_state(config, torch.device("cpu"))
    for _ in _steps(config, state, start):
        pass
    base = {name: tensor.clone() for name, tensor in state_tensors(state).items()}
    split = Split(config.task, config.split)
    for branch in branches:
        recipe = dataclasses.replace(config, learning_rate=branch.speed * config.learning_rate)
        state = restored_state(recipe, changed_tensors(base, branch, split, recipe), start, torch.device("cpu"))
        yield _point(branch, state, split)
        for _ in _steps(recipe, state, until):
            yield _point(branch, state, split)


def _steps(config: TrainConfig, state: TrainState, until: int) -> Iterator[int]:
    """Advance a state, pausing after every row up to `until`."""
    for milestone in train(config, state, lambda weights: {}):
        if milestone.row is not None:
            yield milestone.step
        if milestone.step >= until:
            return


def changed_tensors(base: Mapping[str, Tensor], branch: Branch, split: Split, config: TrainConfig) -> dict[str, Tensor]:
    """The `state_tensors` that a branch starts from, from those that all share."""
    changed = {name: tensor.clone() for name, tensor in base.items()}
    letters = slice(split.task.first_variable_token, None)
    changed[EMBEDDINGS][letters] = branch.embeddings(base[EMBEDDINGS][letters], split, config)
    for moment in MOMENTS if branch.forgets else ():
        changed[f"{moment}.{EMBEDDINGS}"][letters] = 0
    return changed


def _point(branch: Branch, state: TrainState, split: Split) -> Point:
    subject = Subject({name: weight.detach() for name, weight in state.parameters.items()}, split)
    return Point(
        branch.name,
        state.step,
        diagnose(subject).state.value,
        variable_spread(subject).value,
        embedding_spread(subject).value,
        identity_z(subject).value,
        {kind.value: full_prefix_accuracy(subject, kind).value for kind in Kind},
    )
