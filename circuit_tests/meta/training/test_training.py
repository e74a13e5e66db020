from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from aa_core.errors import InputError
from aa_core.gate.setting import Setting
from aa_core.gate.updates import adamw
from aa_core.model import symbol_space
from aa_core.task.split import Split
from aa_core.task.training_data import training_batch
from aa_core.training import optimisation
from aa_core.training.codehash import PACKAGE, START, imported_modules, training_code_hash
from aa_core.training.config import TrainConfig
from aa_core.training.loop import Row, train
from aa_core.training.optimisation import TrainState, advance, initial_state, restored_state, state_tensors
from circuit_tests.meta.tiny import TINY, weight_norms

CPU = torch.device("cpu")
SPLIT = Split(TINY.task, TINY.split)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(config: TrainConfig, device: torch.device = CPU) -> tuple[TrainState, list[Row]]:
    state = initial_state(config, device)
    rows = [milestone.row for milestone in train(config, state, weight_norms) if milestone.row is not None]
    return state, rows


def largest_difference(a: TrainState, b: TrainState) -> float:
    return max((a.parameters[name] - b.parameters[name]).abs().max().item() for name in a.parameters)


# The loop


def test_milestones_are_the_rows_and_checkpoints_of_the_config():
    state = initial_state(TINY, CPU)
    milestones = list(train(TINY, state, weight_norms))
    assert [milestone.step for milestone in milestones if milestone.row] == [5, 10, 15, 20, 25, 30, 35, 40, 45, 47]
    checkpoints = [milestone.step for milestone in milestones if TINY.keeps_checkpoint(milestone.step)]
    assert checkpoints == [0, 4, 8, 12, 16, 20, 30, 40, 47]


def test_a_row_holds_the_mean_loss_since_the_last_row_and_the_measures_of_the_weights():
    config = dataclasses.replace(TINY, steps=10, decay_steps=0)
    _, rows = trained(config)
    state = initial_state(config, CPU)
    losses = [advance(state, config, SPLIT, step) for step in range(1, 11)]
    assert [row["step"] for row in rows] == [5, 10]
    assert [row["loss"] for row in rows] == pytest.approx([np.mean(losses[:5]), np.mean(losses[5:])])
    final = {name: parameter.norm().item() for name, parameter in state.parameters.items()}
    assert {name: rows[-1][name] for name in final} == final


def test_measuring_does_not_change_training():
    rows = trained(TINY)[0], trained(dataclasses.replace(TINY, log_every=1))[0]
    assert largest_difference(*rows) == 0


def test_training_learns():
    config = dataclasses.replace(TINY, steps=200, batch_size=64, learning_rate=2e-2, log_every=20, decay_steps=50)
    _, rows = trained(config)
    chance = np.log(TINY.task.modulus)
    assert rows[0]["loss"] == pytest.approx(chance, abs=0.15), "the first steps are near chance"
    assert rows[-1]["loss"] < 0.4 * chance, f"the loss fell only from {rows[0]['loss']:.3f} to {rows[-1]['loss']:.3f}"


def test_the_learning_rate_falls_linearly_to_zero_over_the_decay():
    config = dataclasses.replace(TINY, steps=10, decay_steps=4, learning_rate=0.8)
    rates = [config.learning_rate_at(step) for step in range(10)]
    assert rates == pytest.approx([0.8] * 7 + [0.6, 0.4, 0.2])
    constant = dataclasses.replace(config, decay_steps=0)
    assert {constant.learning_rate_at(step) for step in range(10)} == {0.8}


def test_the_decay_acts_on_the_updates():
    decayed = dataclasses.replace(TINY, steps=20, decay_steps=10)
    constant = dataclasses.replace(decayed, decay_steps=0)
    states = [initial_state(config, CPU) for config in (decayed, constant)]
    for until, equal in ((11, True), (12, False)):
        for state, config in zip(states, (decayed, constant), strict=True):
            advance(state, config, SPLIT, until)
        difference = largest_difference(*states)
        assert (difference == 0) == equal, f"after {until} of 20 steps the weights differ by {difference}"


def test_divergence_names_the_option_to_change():
    config = dataclasses.replace(TINY, learning_rate=1e30)
    with pytest.raises(
        InputError, match=r"^training diverged, .*after step \d+: .*\(learning_rate is 1e\+30,"
    ) as caught:
        trained(config)
    assert "\n" not in str(caught.value)


def test_weights_that_the_last_update_breaks_are_noticed():
    config = dataclasses.replace(TINY, steps=1, decay_steps=0, learning_rate=1e38, weight_decay=1e38)
    with pytest.raises(InputError, match="is not finite after step 1"):
        trained(config)


# One update


def test_a_held_out_pair_in_a_batch_is_refused(monkeypatch: pytest.MonkeyPatch):
    batch = training_batch(SPLIT, 0, 0, 4)
    values = batch.values.copy()
    values[-1] = SPLIT.held_out_pairs[0]
    tampered = dataclasses.replace(batch, values=values)
    monkeypatch.setattr(optimisation, "training_batch", lambda *arguments: tampered)
    state = initial_state(TINY, CPU)
    before = {name: tensor.clone() for name, tensor in state_tensors(state).items()}
    with pytest.raises(RuntimeError, match="held-out pair"):
        advance(state, TINY, SPLIT, 1)
    assert all(torch.equal(before[name], tensor) for name, tensor in state_tensors(state).items()), "it updated first"


def test_the_initial_weights_have_the_recipes_scale_and_depend_on_the_seed():
    config = TrainConfig(init_scale=0.5)
    state = initial_state(config, CPU)
    for name, parameter in state.parameters.items():
        assert parameter.std().item() == pytest.approx(0.5 / 128**0.5, rel=0.05), name
    other = initial_state(dataclasses.replace(config, seed=1), CPU)
    assert not torch.equal(state.parameters["embed.W_E"], other.parameters["embed.W_E"])


def test_an_update_is_adamws():
    finding = adamw(Setting("tiny", dataclasses.replace(TINY, weight_decay=0.1)))
    assert finding.ok, finding.figures


@pytest.mark.parametrize("kept", ["all", "weights", "no step"])
def test_a_restored_state_goes_on_to_the_same_bits_and_needs_its_moments(kept: str):
    state = initial_state(TINY, CPU)
    advance(state, TINY, SPLIT, 20)
    tensors = {name: tensor.clone() for name, tensor in state_tensors(state).items()}
    advance(state, TINY, SPLIT, 40)
    if kept == "weights":
        tensors = {name: tensor * (not name.startswith("exp_avg")) for name, tensor in tensors.items()}
    restored = restored_state(TINY, tensors, 20, CPU)
    if kept == "no step":
        for moments in restored.optimizer.state.values():
            moments["step"].zero_()
    advance(restored, TINY, SPLIT, 40)
    difference = largest_difference(state, restored)
    assert (difference == 0) == (kept == "all"), f"the weights differ by {difference}"


def test_bfloat16_is_close_to_float32():
    state = initial_state(TINY, CPU)
    advance(state, TINY, SPLIT, 20)
    batch = training_batch(SPLIT, 0, 20, 512)
    tokens, answers = torch.from_numpy(batch.tokens), torch.from_numpy(batch.answers)
    gradients = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = symbol_space.loss(symbol_space.symbol_tables(TINY.task, state.parameters), tokens, answers)
        gradients.append(torch.autograd.grad(torch.as_tensor(loss), list(state.parameters.values())))
    for name, exact, rounded in zip(state.parameters, *gradients, strict=True):
        assert rounded.dtype == torch.float32, name
        error = ((exact - rounded).norm() / exact.norm()).item()
        assert 0 < error < 0.1, f"the gradient of {name} is off by {error:.1%}"


def test_training_in_bfloat16_follows_training_in_float32():
    losses = [
        [row["loss"] for row in trained(dataclasses.replace(TINY, precision=precision))[1]]
        for precision in ("float32", "bfloat16")
    ]
    assert losses[1] == pytest.approx(losses[0], abs=0.01)
    assert losses[1] != losses[0], "the precision makes no difference"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_gpu_trains_the_same_model(precision: str):
    config = dataclasses.replace(TINY, precision=precision)
    (on_cpu, cpu_rows), (on_gpu, gpu_rows) = (trained(config, torch.device(name)) for name in ("cpu", "cuda"))
    assert on_gpu.parameters["embed.W_E"].is_cuda
    on_gpu.parameters = {name: parameter.cpu() for name, parameter in on_gpu.parameters.items()}
    tolerance = 1e-3 if precision == "float32" else 0.05
    assert largest_difference(on_cpu, on_gpu) < tolerance
    assert [row["loss"] for row in gpu_rows] == pytest.approx([row["loss"] for row in cpu_rows], abs=tolerance)


# The hash of the training code


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package's sources, to be edited."""
    return shutil.copytree(PACKAGE, tmp_path / "aa_core", ignore=lambda _, names: [n for n in names if "cache" in n])


def fresh_hash(package: Path) -> str:
    return training_code_hash.__wrapped__(package)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path.name} has no {old!r} to edit"
    path.write_text(text.replace(old, new, 1))


CODE_CHANGES = {
    "constant of the optimiser": ("training/optimisation.py", "fused=True", "fused=False"),
    "default of the config": ("training/config.py", "weight_decay: float = 0.02", "weight_decay: float = 0.03"),
    "forward pass": ("model/symbol_space.py", ".relu_()", ".sigmoid_()"),
    "initial weights": ("model/parameters.py", "init_scale / model", "2 * init_scale / model"),
    "sampler": ("task/training_data.py", "rng.random(size)", "1 - rng.random(size)"),
    "sequences": ("task/sequences.py", "task.pad_token", "task.plus_token"),
    "split": ("task/split.py", "math.floor", "math.ceil"),
    "package's own file": ("task/__init__.py", "", "x = 1\n"),
}

OTHER_CHANGES = {
    "comment": ("training/optimisation.py", "MOMENTS = (", "# The two moments.\nMOMENTS = ("),
    "docstring": ("task/training_data.py", "The training distribution", "The distribution of training"),
    "layout": ("training/optimisation.py", "MOMENTS = (", "\n\nMOMENTS  =  (  "),
    "loop": ("training/loop.py", "loss_sum, last_row = 0.0, state.step", "loss_sum, last_row = 0.0, 0"),
    "run store": ("runs/store.py", 'ASIDE = ".damaged-"', 'ASIDE = ".broken-"'),
    "checkpoints": ("checkpoints/header.py", "VERSION = 1", "VERSION = 2"),
}


@pytest.mark.parametrize("change", CODE_CHANGES)
def test_the_code_hash_changes_with_the_code(package: Path, change: str):
    before = fresh_hash(package)
    name, old, new = CODE_CHANGES[change]
    edit(package / name, old, new)
    assert fresh_hash(package) != before


@pytest.mark.parametrize("change", OTHER_CHANGES)
def test_the_code_hash_does_not_change_with_anything_else(package: Path, change: str):
    before = fresh_hash(package)
    name, old, new = OTHER_CHANGES[change]
    edit(package / name, old, new)
    assert fresh_hash(package) == before


def test_the_training_code_is_the_modules_that_an_update_is_made_of():
    found = set(imported_modules(PACKAGE, START))
    needed = "model.config model.parameters model.symbol_space task.config task.training_data task.sequences task.split"
    assert {f"aa_core.{name}" for name in needed.split()} | {START, "aa_core.training.config", "aa_core"} <= found
    foreign = ["cli", "claims", "circuits", "runs", "checkpoints", "model.hooked", "training.loop", "training.recipes"]
    foreign += ["task.sampling", "task.problems"]
    assert not {name for name in found if name.startswith(tuple(f"aa_core.{part}" for part in foreign))}


IMPORTS = {
    "import": "import p.a.b",
    "import as": "import p.a.b as other",
    "from package": "from p.a import b",
    "from module": "from p.a.b import name",
    "relative package": "from . import b",
    "relative module": "from .b import name",
    "relative to the parent": "from ..a.b import name",
    "in a function": "def f():\n    from p.a import b",
}


@pytest.mark.parametrize("form", IMPORTS)
def test_every_form_of_import_is_followed(tmp_path: Path, form: str):
    (tmp_path / "p" / "a").mkdir(parents=True)
    for name, text in {"__init__": "", "a/__init__": "", "a/start": IMPORTS[form], "a/b": "", "a/c": ""}.items():
        (tmp_path / "p" / f"{name}.py").write_text(text)
    assert set(imported_modules(tmp_path / "p", "p.a.start")) == {"p", "p.a", "p.a.start", "p.a.b"}
