"""Faults of training that the gate must catch, each one edit of one source file.

In a test a fault is planted in the running process (`planted`), so that the invariants meet it within a second. For
everything the gate does, trainings included, it is planted in a copy of the package that another process runs; the
hash of the training code is then another, so the run store keeps the faulty runs apart. From the repository's root:

    python -m circuit_tests.meta.gate.gate_faults label-off-by-one gate --no-invariants --json fault.json

runs `aa gate --no-invariants --json fault.json` on a copy with that fault and exits as it does; without arguments it
lists the faults.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from inspect import CO_NEWLOCALS, unwrap
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from aa_core.training.codehash import PACKAGE


@dataclass(frozen=True)
class Fault:
    """An edit that plants a fault.

    Attributes:
        file: source file, relative to the package.
        old: text that stands there once.
        new: what replaces it.
        moved: the invariant that must name what moved.
        too: others that the same fault may move.
    """

    file: str
    old: str
    new: str
    moved: str
    too: tuple[str, ...] = ()

    def edited(self, source: str) -> str:
        assert source.count(self.old) == 1, (
            f"{self.file} has {self.old!r} {source.count(self.old)} times, expected once"
        )
        return source.replace(self.old, self.new)


DATA, SEQUENCES = "task/training_data.py", "task/sequences.py"
SPACE, OPTIMISATION = "model/symbol_space.py", "training/optimisation.py"
LOOP, UNFINISHED, STORE = "training/loop.py", "runs/unfinished.py", "runs/store.py"
SOME_LEAK = "    values = pairs[rng.integers(0, len(pairs), size)]\n"
STEP = "        state.optimizer.step()\n"

PLAIN = ("forward/activations", "forward/loss", "forward/gradients")
BOTH_EMBEDDINGS = ("forward/token-embedding", "forward/position-embedding")
LAW = ("sampler/training-pairs", "sampler/operand-letters", "sampler/kinds", "sampler/assignments")

FAULTS = {
    "label-off-by-one": Fault(
        SEQUENCES, "values.sum(axis=1) % task.modulus", "(values.sum(axis=1) + 1) % task.modulus", "sampler/labels"
    ),
    "one-held-out-pair-leaks": Fault(
        DATA,
        SOME_LEAK,
        SOME_LEAK + "    values[rng.random(size) < 1e-7] = split.held_out_pairs[0]\n",
        "sampler/held-out-pairs",
        LAW,
    ),
    "a-held-out-pair-is-trained-on": Fault(
        DATA,
        "    pairs = split.seen_pairs\n",
        "    pairs = np.concatenate([split.seen_pairs, split.held_out_pairs[:1]])\n",
        "sampler/held-out-pairs",
        (*LAW, "update/", "run/"),
    ),
    "held-out-pairs-are-not-refused": Fault(
        OPTIMISATION,
        "if not split.seen[batch.values[:, 0], batch.values[:, 1]].all():",
        "if not split.seen[batch.values[:, 0], batch.values[:, 1]].any():",
        "update/held-out-guard",
    ),
    "another-split": Fault(
        "task/split.py",
        "random.Random(self.config.seed).sample",
        "random.Random(self.config.seed + 1).sample",
        "split/pairs",
        ("sampler/held-out-pairs", "sampler/training-pairs"),
    ),
    "causal-mask-off-by-one": Fault(
        SPACE, "device=x.device).triu(1)", "device=x.device).triu(2)", "forward/causal-mask", (*BOTH_EMBEDDINGS, *PLAIN)
    ),
    "wrong-position-embedding": Fault(
        SPACE,
        "x[n_vocab + task.equals_position])[None]",
        "x[n_vocab + task.right_position])[None]",
        "forward/position-embedding",
        PLAIN,
    ),
    "wrong-token-embedding": Fault(
        SPACE, "(x[task.equals_token] +", "(x[task.plus_token] +", "forward/token-embedding", PLAIN
    ),
    "wrong-gradient": Fault(SPACE, "d_logits *= d_loss / n", "d_logits *= d_loss", "forward/gradients"),
    "restricted-variables-leak": Fault(
        DATA,
        "left, right = split.allowed_variables(0), split.allowed_variables(1)",
        "left, right = split.allowed_variables(0), np.arange(split.task.n_variables)",
        "sampler/restricted-letters",
        LAW,
    ),
    "weight-decay-on-nothing": Fault(
        OPTIMISATION, "weight_decay=config.weight_decay", "weight_decay=0.0", "update/weight-decay", ("update/adamw",)
    ),
    "wrong-sign-of-decay": Fault(
        OPTIMISATION,
        STEP,
        '        state.optimizer.param_groups[0]["weight_decay"] = -config.weight_decay\n' + STEP,
        "update/weight-decay",
        ("update/adamw",),
    ),
    "optimiser-state-not-restored": Fault(
        OPTIMISATION,
        '{moment: tensors[f"{moment}.{name}"] for moment in MOMENTS}',
        '{moment: torch.zeros_like(tensors[f"{moment}.{name}"]) for moment in MOMENTS}',
        "update/resume",
        ("run/resume",),
    ),
    "no-distractors": Fault(
        DATA,
        "drawn = rng.integers(1, task.max_assignments + 1, len(variables))",
        "drawn = rng.integers(1, 2, len(variables))",
        "sampler/assignments",
        ("sampler/distractor-letters", "sampler/distractor-values", "sampler/order", "sampler/gaps"),
    ),
    "early-letters-distract-more": Fault(
        SEQUENCES,
        "keys = rng.random((n, task.n_variables), dtype=np.float32)",
        "keys = rng.random((n, task.n_variables), dtype=np.float32) + np.linspace(0, 0.5, task.n_variables)",
        "sampler/distractor-letters",
    ),
    "distractors-of-few-values": Fault(
        SEQUENCES,
        "constants = rng.integers(0, task.modulus, (n, task.max_assignments))",
        "constants = rng.integers(0, task.modulus // 2, (n, task.max_assignments))",
        "sampler/distractor-values",
    ),
    "assignments-in-order": Fault(
        SEQUENCES,
        "order_keys[~active] = 2",
        "order_keys[:] = slots / task.max_assignments\n    order_keys[~active] = 2",
        "sampler/order",
        ("sampler/distractor-letters",),
    ),
    "half-of-the-pairs": Fault(
        DATA, "rng.integers(0, len(pairs), size)", "rng.integers(0, len(pairs) // 2, size)", "sampler/training-pairs"
    ),
    "pad-for-plus": Fault(SEQUENCES, "= task.plus_token", "= task.pad_token", "sampler/well-formed", ("sampler/",)),
    "sources-are-letters": Fault(
        SEQUENCES,
        "np.take_along_axis(place, operand_slot, axis=1), axis=1) + 1",
        "np.take_along_axis(place, operand_slot, axis=1), axis=1)",
        "sampler/fields",
    ),
    "pads-at-the-front": Fault(
        SEQUENCES, "* (n_assignments[:, None] + 1)).astype", "* n_assignments[:, None]).astype", "sampler/gaps"
    ),
    "few-two-variable-sequences": Fault(
        DATA,
        "one, two = split.config.one_variable_frequency, split.config.two_variable_frequency",
        "one, two = split.config.one_variable_frequency, split.config.two_variable_frequency / 2",
        "sampler/kinds",
    ),
    "data-order-ignores-the-step": Fault(
        OPTIMISATION,
        "training_batch(split, config.seed, state.step,",
        "training_batch(split, config.seed, 0,",
        "update/data-order",
        ("update/adamw",),
    ),
    "data-order-ignores-the-seed": Fault(DATA, "np.array([seed, index]", "np.array([0, index]", "sampler/reseeding"),
    "data-order-ignores-the-index": Fault(
        DATA, "np.array([seed, index]", "np.array([seed, 0]", "sampler/reseeding", ("sampler/", "training/learns")
    ),
    "initial-weights-ignore-the-seed": Fault(
        "model/parameters.py", "manual_seed(seed)", "manual_seed(0)", "initial/weights"
    ),
    "constant-learning-rate": Fault(
        OPTIMISATION, "config.learning_rate_at(state.step)", "config.learning_rate", "update/learning-rate"
    ),
    "gradients-add-up": Fault(
        OPTIMISATION, "        state.optimizer.zero_grad()\n", "", "update/adamw", ("update/resume", "run/resume")
    ),
    "loop-shrinks-the-weights": Fault(
        LOOP,
        "        yield Milestone(until, row)\n",
        "        for parameter in state.parameters.values():\n"
        "            parameter.data.mul_(0.5)\n"
        "        yield Milestone(until, row)\n",
        "run/kept-weights",
        ("run/resume",),
    ),
    "loop-logs-the-sum-of-losses": Fault(
        LOOP, '"loss": loss_sum / (until - last_row)', '"loss": loss_sum', "run/kept-weights", ("run/resume",)
    ),
    "run-resumes-a-step-early": Fault(
        UNFINISHED,
        "restored_state(config, tensors, step, device)",
        "restored_state(config, tensors, step - 1, device)",
        "run/resume",
    ),
    "checkpoints-are-rounded": Fault(
        STORE,
        "{name: weight.detach().cpu() for name",
        "{name: weight.detach().cpu().bfloat16().float() for name",
        "run/kept-weights",
        ("run/resume",),
    ),
    "run-key-ignores-the-config": Fault(
        "runs/key.py", 'f"{config_json(config)}{code}\\n"', 'f"{code}\\n"', "run/found-again"
    ),
}


@contextmanager
def planted(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> Iterator[None]:
    """Give the functions of the running process the code that they would have with the fault."""
    module = importlib.import_module(f"aa_core.{fault.file.removesuffix('.py').replace('/', '.')}")
    source = (PACKAGE / fault.file).read_text()
    before, after = (_codes(compile(text, fault.file, "exec")) for text in (source, fault.edited(source)))
    changed = [name for name in before if before[name] != after[name]]
    assert changed, f"the edit of {fault.file} changes no function"
    with monkeypatch.context() as patch:
        for name in changed:
            patch.setattr(_function(module, name), "__code__", after[name])
        yield


def _codes(code: CodeType) -> dict[str, CodeType]:
    """Code of every function of a module or class by its qualified name; functions within functions go with theirs."""
    found: dict[str, CodeType] = {}
    for inner in (constant for constant in code.co_consts if isinstance(constant, CodeType)):
        if not inner.co_flags & CO_NEWLOCALS:
            found |= _codes(inner)  # the body of a class
        elif "<" not in inner.co_name:
            found[inner.co_qualname] = inner
    return found


def _function(module: ModuleType, name: str) -> FunctionType:
    found: object = module
    for part in name.split("."):
        found = vars(found)[part]
    if isinstance(found, cached_property):
        found = found.func
    function = unwrap(found.__func__ if isinstance(found, staticmethod) else found)  # pyright: ignore[reportArgumentType]
    assert isinstance(function, FunctionType), f"{name} is not a function"
    return function


def planted_package(fault: Fault, folder: Path) -> Path:
    """A copy of the package with the fault, as `folder/aa_core`."""
    copy = folder / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / fault.file
    path.write_text(fault.edited(path.read_text()))
    return copy


def run_planted(fault: Fault, arguments: Sequence[str]) -> int:
    """Run a command line of `aa` on a copy of the package with the fault; its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        copy = planted_package(fault, Path(folder))
        environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
        command = [sys.executable, "-P", "-m", "aa_core.cli.main", *arguments]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in FAULTS:
        named = f"no fault {sys.argv[1]!r}" if len(sys.argv) > 1 and sys.argv[1] not in FAULTS else "nothing to run"
        expected = "expected FAULT and a command of aa, such as gate --invariants-only"
        print(f"{named}: {expected}; FAULT is one of {', '.join(FAULTS)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(run_planted(FAULTS[sys.argv[1]], sys.argv[2:]))
