"""Checkpoints come back exactly, from every format, with the sizes, step and split that belong to them."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from aa_core.checkpoints import (
    load_checkpoint,
    save_checkpoint,
    weights_sha256,
)
from aa_core.checkpoints.checkpoint import step_in_name
from aa_core.model.config import ModelConfig, parameter_shapes
from aa_core.task.config import TaskConfig
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.checkpoint_files import (
    MODEL,
    TASK,
    assert_holds,
    bridge_config,
    hooked_state_dict,
    small_config,
    small_parameters,
    torch_bytes,
)

# Our format


def test_own_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "new" / "step_000025.safetensors"
    parameters, config = small_parameters(), small_config()
    save_checkpoint(path, parameters, config, 25)
    checkpoint = load_checkpoint(path)
    assert_holds(checkpoint, parameters)
    assert checkpoint.config == config
    assert (checkpoint.task, checkpoint.model, checkpoint.split) == (TASK, MODEL, Split(TASK, config.split))
    assert (checkpoint.step, checkpoint.format, checkpoint.path) == (25, "assign-and-add", path)


def test_own_bytes_depend_on_the_arguments_alone(tmp_path: Path) -> None:
    parameters = small_parameters()
    backwards = dict(reversed(parameters.items()))
    paths = [tmp_path / f"{copy}.safetensors" for copy in range(8)]
    for path in paths:
        save_checkpoint(path, parameters, small_config(), 25)
    save_checkpoint(tmp_path / "backwards.safetensors", backwards, small_config(), 25)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1, "equal checkpoints differ in their bytes"
    save_checkpoint(tmp_path / "other.safetensors", parameters, small_config(), 26)
    assert (tmp_path / "other.safetensors").read_bytes() != paths[0].read_bytes(), "the step is not in the file"


def test_own_file_is_an_ordinary_safetensors_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_checkpoint(path, small_parameters(), small_config(), 25)
    with safetensors.safe_open(path, "pt") as file:
        assert set(file.keys()) == set(parameter_shapes(TASK, MODEL))
        (header,) = file.metadata().values()
    for text in ('"recipe": "custom"', '"step": 25', '"modulus": 7', weights_sha256(small_parameters())):
        assert text in header


def test_weights_in_training_can_be_saved(tmp_path: Path) -> None:
    trained = {name: tensor.clone().requires_grad_() for name, tensor in small_parameters().items()}
    assert weights_sha256(trained) == weights_sha256(small_parameters())
    save_checkpoint(tmp_path / "x.safetensors", trained, small_config(), 0)
    assert_holds(load_checkpoint(tmp_path / "x.safetensors"), small_parameters())


def test_own_step_comes_from_the_header(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "step_7.safetensors", small_parameters(), small_config(), 25)
    assert load_checkpoint(tmp_path / "step_7.safetensors").step == 25


# Formats of others

Writer = Callable[[dict[str, Tensor]], bytes]
FOREIGN: dict[str, Writer] = {
    "state dict": lambda state: torch_bytes(hooked_state_dict(state)),
    "without what must be zero": torch_bytes,
    "legacy torch.save": lambda state: torch_bytes(hooked_state_dict(state), as_zip=False),
    "ordered": lambda state: torch_bytes(OrderedDict(hooked_state_dict(state))),
    "shuffled": lambda state: torch_bytes(dict(reversed(state.items()))),
    "nn.Parameter": lambda state: torch_bytes({name: torch.nn.Parameter(value) for name, value in state.items()}),
    "strided": lambda state: torch_bytes({name: value.mT.contiguous().mT for name, value in state.items()}),
    "float64": lambda state: torch_bytes({name: value.double() for name, value in state.items()}),
    "in model_state_dict": lambda state: torch_bytes({"model_state_dict": hooked_state_dict(state), "epoch": 3}),
    "in state_dict": lambda state: torch_bytes({"state_dict": hooked_state_dict(state)}),
    "safetensors": lambda state: safetensors.torch.save(hooked_state_dict(state)),
    "safetensors with metadata": lambda state: safetensors.torch.save(state, {"format": "pt"}),
}


@pytest.mark.parametrize("writer", FOREIGN.values(), ids=FOREIGN)
def test_hooked_transformer_round_trip(writer: Writer, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_step_401.pth"
    path.write_bytes(writer(small_parameters()))
    checkpoint = load_checkpoint(path)
    assert_holds(checkpoint, small_parameters())
    assert (checkpoint.step, checkpoint.format, checkpoint.config) == (401, "hooked-transformer", None)
    assert (checkpoint.task, checkpoint.model) == (TASK, MODEL)


def test_transformer_bridge_round_trip(tmp_path: Path) -> None:
    from transformer_lens.conversion_utils import convert_tl_checkpoint
    from transformer_lens.model_bridge.sources import boot_native

    config = bridge_config(TASK, MODEL)
    converted = convert_tl_checkpoint(hooked_state_dict(small_parameters()), config)
    bridge = boot_native(config)
    bridge.load_state_dict(converted, strict=True)
    weights_only = {name: value for name, value in converted.items() if value.count_nonzero()}
    for name, state in {"converted": converted, "state_dict": bridge.state_dict(), "weights": weights_only}.items():
        contiguous = {key: value.contiguous() for key, value in state.items()}
        for data in (torch_bytes(state), safetensors.torch.save(contiguous)):
            (tmp_path / name).write_bytes(data)
            checkpoint = load_checkpoint(tmp_path / name)
            assert_holds(checkpoint, small_parameters())
            assert (checkpoint.format, checkpoint.task, checkpoint.model) == ("transformer-bridge", TASK, MODEL), name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_cast(dtype: torch.dtype, tmp_path: Path) -> None:
    half = {name: value.to(dtype) for name, value in small_parameters().items()}
    (tmp_path / "half.pth").write_bytes(torch_bytes(half))
    assert_holds(load_checkpoint(tmp_path / "half.pth"), {name: value.float() for name, value in half.items()})


def test_content_decides_not_the_name(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "own.pth", small_parameters(), small_config(), 25)
    (tmp_path / "foreign.safetensors").write_bytes(torch_bytes(small_parameters()))
    assert load_checkpoint(tmp_path / "own.pth").format == "assign-and-add"
    assert load_checkpoint(str(tmp_path / "foreign.safetensors")).format == "hooked-transformer"


@pytest.mark.parametrize(
    ("task", "model"),
    [
        (TaskConfig(), ModelConfig(12, 10, 9)),
        (TaskConfig(modulus=5, n_variables=4, max_assignments=4, n_ctx=12), ModelConfig(3, 5, 2)),
        (TaskConfig(modulus=5, n_variables=4, max_assignments=4, n_ctx=17), ModelConfig(3, 1, 1)),
        (TaskConfig(modulus=5, n_variables=9, max_assignments=3, n_ctx=11), ModelConfig(4, 3, 2)),
    ],
    ids=["paper's task", "few letters", "room to spare", "odd length"],
)
def test_sizes_are_inferred(task: TaskConfig, model: ModelConfig, tmp_path: Path) -> None:
    (tmp_path / "x.pth").write_bytes(torch_bytes(hooked_state_dict(small_parameters(0, task, model))))
    checkpoint = load_checkpoint(tmp_path / "x.pth")
    assert (checkpoint.task, checkpoint.model) == (task, model)


@pytest.mark.parametrize(
    ("name", "step"),
    {
        "checkpoint_step_401.pth": 401,
        "step_000400.safetensors": 400,
        "step400.pt": 400,
        "Step=7.pth": 7,
        "step-0.pth": 0,
        "step_1_of_step_20_seed_3.pth": 20,
        "model_state_dict.pth": None,
        "checkpoint_12.pth": None,
        "seed_3_step.pth": None,
    }.items(),
)
def test_step_in_name(name: str, step: int | None) -> None:
    assert step_in_name(name) == step


# Splits


def test_split_of_a_foreign_file(tmp_path: Path) -> None:
    paper = ModelConfig(4, 4, 4)
    (tmp_path / "paper.pth").write_bytes(torch_bytes(small_parameters(0, TaskConfig(), paper)))
    (tmp_path / "small.pth").write_bytes(torch_bytes(small_parameters()))
    assert load_checkpoint(tmp_path / "paper.pth").split == Split(TaskConfig(), SplitConfig())
    assert load_checkpoint(tmp_path / "small.pth").split.config == SplitConfig(never_left="", never_right="ab")
    given = SplitConfig(0.5, never_left="a", never_right="")
    assert load_checkpoint(tmp_path / "small.pth", given).split == Split(TASK, given)


def test_split_given_for_one_of_ours_overrides_the_header(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "x.safetensors", small_parameters(), small_config(), 25)
    given = SplitConfig(0.5, never_left="a", never_right="")
    checkpoint = load_checkpoint(tmp_path / "x.safetensors", given)
    assert checkpoint.split == Split(TASK, given)
    assert checkpoint.config == small_config(), "the config says how the run was trained, whatever split is given"


# Hash


def test_hash_tells_weights_apart() -> None:
    parameters = small_parameters()
    name = "unembed.W_U"
    last_bit = parameters[name].clone()
    last_bit.view(torch.int32)[-1, -1] ^= 1
    renamed = {key.replace("W_U", "W_V"): value for key, value in parameters.items()}
    variants = [
        parameters,
        parameters | {name: last_bit},
        parameters | {name: parameters[name].reshape(parameters[name].shape[::-1])},
        parameters | {name: parameters[name] * -1},
        renamed,
    ]
    assert len({weights_sha256(variant) for variant in variants}) == len(variants)
    assert weights_sha256({name: value.mT.contiguous().mT for name, value in parameters.items()}) == weights_sha256(
        parameters
    ), "the hash depends on the layout in memory"


def test_loading_does_not_pay_for_transformer_lens() -> None:
    code = "import sys, aa_core.checkpoints; print(*sorted({'transformer_lens', 'transformers'} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "", "aa_core.checkpoints imports a library that takes seconds"
