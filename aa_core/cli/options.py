"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from aa_core.errors import InputError

if TYPE_CHECKING:
    from aa_core.checkpoints import Checkpoint, Trajectory
    from aa_core.runs import Run, RunStore
    from aa_core.task.split import SplitConfig
    from aa_core.training.config import TrainConfig


MOST_THREADS = 256
OF_A_SEED = {"recipe": "paper", "device": "cpu"}
"""Options that say how a seed is trained, with their defaults."""


def path(text: str) -> Path:
    """A path as an option gives it; an empty one is a variable that was not set, not the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    try:
        Path(text).exists()
        Path(text).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a null character
        raise argparse.ArgumentTypeError(f"{text[:80]!r} can be no path: {error}") from error
    return Path(text)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Options that say which training run and where it is kept."""
    parser.add_argument(
        "--recipe", default=OF_A_SEED["recipe"], metavar="NAME", help="training recipe: paper (default) or fast"
    )
    parser.add_argument(
        "--cache", type=path, metavar="DIR", help="where runs are kept (default: $AA_CACHE, else the user's cache)"
    )
    parser.add_argument("--device", default=OF_A_SEED["device"], help="cpu (default), cuda or cuda:N")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of PyTorch (default 1)")


def add_subject_options(parser: argparse.ArgumentParser) -> None:
    """Options that say which model."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--checkpoint", type=path, metavar="PATH", help="a checkpoint file, or a folder of checkpoints along training"
    )
    which.add_argument("--seed", type=int, metavar="N", help="the run of a seed, trained if it is not in the cache")
    add_run_options(parser)
    split = parser.add_argument_group("the split that a foreign checkpoint was trained with (default: the paper's)")
    split.add_argument("--split-seed", type=int, metavar="N", help="seed of the draw of training pairs (42)")
    split.add_argument("--train-fraction", type=float, metavar="F", help="share of pairs in training (0.7)")
    split.add_argument("--never-left", metavar="LETTERS", help="letters never on the left in training (kl)")
    split.add_argument("--never-right", metavar="LETTERS", help="letters never on the right in training (ab)")


def run_config(options: argparse.Namespace, seed: int) -> TrainConfig:
    """The config of the run that `--recipe` and a seed name.

    Raises:
        InputError: there is no such recipe or seed.
    """
    from aa_core.training.recipes import recipe_config

    return dataclasses.replace(recipe_config(options.recipe), seed=seed)


def run_store(options: argparse.Namespace) -> RunStore:
    """The store that `--cache` names."""
    from aa_core.runs import RunStore, default_root
    from aa_core.training.metrics import metrics_for

    def notify(message: str) -> None:
        print(f"aa: {message}", file=sys.stderr)

    return RunStore(metrics_for, root=options.cache or default_root(), notify=notify)


def trained_run(options: argparse.Namespace, seed: int) -> Run:
    """The run of a seed, trained under a progress bar if it is not in the store.

    Raises:
        InputError: see `RunStore.run`.
    """
    from aa_core.cli.progress import training_bar

    config = run_config(options, seed)
    with training_bar(f"recipe {options.recipe}, seed {seed}", config.steps) as progress:
        return run_store(options).run(config, device=options.device, threads=options.threads, progress=progress)


def split_option(options: argparse.Namespace) -> SplitConfig | None:
    """The split that options give, None where they give none.

    Raises:
        InputError: a value is out of range.
    """
    from aa_core.task.split import SplitConfig

    given = {
        "seed": options.split_seed,
        "train_fraction": options.train_fraction,
        "never_left": options.never_left,
        "never_right": options.never_right,
    }
    given = {name: value for name, value in given.items() if value is not None}
    return SplitConfig(**given) if given else None


def use_threads(options: argparse.Namespace) -> None:
    """Let PyTorch use `--threads` threads; one by default, since the products are small and the bits depend on it.

    Raises:
        InputError: the number is below 1 or absurd.
    """
    import torch

    if not 1 <= options.threads <= MOST_THREADS:
        raise InputError(f"--threads is {options.threads}, expected 1 to {MOST_THREADS}")
    torch.set_num_threads(options.threads)


def subject_checkpoints(options: argparse.Namespace) -> Checkpoint | Trajectory:
    """The checkpoint or checkpoints that options name: a path, a seed's run, or the fixture.

    Raises:
        InputError: they cannot be loaded, or the options contradict each other.
    """
    from aa_core.checkpoints import load_subject
    from aa_core.fixtures import fixture_folder

    use_threads(options)
    split = split_option(options)
    if options.seed is not None:
        if split is not None:
            raise InputError("a run of a seed knows its split: leave the options of the split out")
        return load_subject(trained_run(options, options.seed).folder)
    given = [f"--{name}" for name, default in OF_A_SEED.items() if getattr(options, name) != default]
    if given:
        raise InputError(f"{' and '.join(given)} of no seed: give --seed N too, or leave it out")
    if split is not None and options.checkpoint is None:
        raise InputError("the fixture knows its split: leave the options of the split out")
    return load_subject(options.checkpoint or fixture_folder(), split)
