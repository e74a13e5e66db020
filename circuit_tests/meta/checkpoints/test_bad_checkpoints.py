"""Every file that is no checkpoint of the model is refused in one line that names it, and none runs code."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aa_core.checkpoints import load_checkpoint, save_checkpoint, weights_sha256
from aa_core.checkpoints.formats import BRIDGE
from aa_core.errors import InputError
from aa_core.task.config import TaskConfig
from aa_core.task.split import SplitConfig
from circuit_tests.meta.checkpoint_files import (
    MODEL,
    TASK,
    State,
    changed,
    filled,
    having,
    hooked_state_dict,
    refusal,
    small_config,
    small_parameters,
    torch_bytes,
    without,
)


def own_bytes(tmp_path: Path) -> bytes:
    """One of our files."""
    save_checkpoint(tmp_path / "own.safetensors", small_parameters(), small_config(), 25)
    return (tmp_path / "own.safetensors").read_bytes()


# Files that cannot be read


def test_no_such_file(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "step_1.pth")


def test_dangling_link_is_not_skipped(tmp_path: Path) -> None:
    (tmp_path / "step_1.pth").symlink_to(tmp_path / "gone.pth")
    assert "step_1.pth: No such file" in refusal(tmp_path)


def test_checkpoint_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        load_checkpoint(tmp_path)


FOUR_BIT = json.dumps({"x": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}).encode()
NOT_CHECKPOINTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty"),
    "one byte": (b"\x80", "damaged"),
    "text": (b"Git LFS pointer, not the weights\n", "not a checkpoint"),
    "text like json": (b'{"a": 1}' + b"{}", "damaged, truncated or not a safetensors file"),
    "null bytes": (bytes(100), "not a checkpoint"),
    "zip that is no checkpoint": (b"PK\x05\x06" + bytes(18), "not a checkpoint"),
    "zip magic alone": (b"PK\x03\x04", "damaged, truncated or not written by torch.save"),
    "pickle of a dict": (pickle.dumps({"embed.W_E": 1}, protocol=2), "damaged"),
    "pickle of protocol 5": (pickle.dumps([1], protocol=5), "damaged"),
    "list": (torch_bytes([torch.zeros(2)]), "holds a list, expected a state dict"),
    "tensor": (torch_bytes(torch.zeros(2)), "holds a Tensor, expected a state dict"),
    "number": (torch_bytes(3), "holds a int, expected a state dict"),
    "whole module": (torch_bytes(torch.nn.Linear(2, 2)), "save model.state_dict() alone"),
    "numbered tensors": (torch_bytes({0: torch.zeros(2)}), "expected a state dict"),
    "numbered tensors inside": (torch_bytes({"state_dict": {0: torch.zeros(2)}}), "expected a state dict"),
    "no tensor": (torch_bytes({}), "holds nothing, expected the state dict of a HookedTransformer"),
    "another model": (torch_bytes({"fc.weight": torch.zeros(2)}), "holds fc.weight, expected the state dict"),
    "wrapper without a dict": (torch_bytes({"state_dict": 5}), "holds state_dict, expected the state dict"),
    "safetensors of numbers that torch lacks": (
        len(FOUR_BIT).to_bytes(8, "little") + FOUR_BIT + b"\0",
        "damaged, truncated or not a safetensors file",
    ),
    "safetensors of nothing": (safetensors.torch.save({}), "holds nothing"),
    "safetensors of another model": (safetensors.torch.save({"x": torch.zeros(2)}), "holds x, expected"),
}


@pytest.mark.parametrize("name", ["x.pth", "x.safetensors"])
@pytest.mark.parametrize(("data", "reason"), NOT_CHECKPOINTS.values(), ids=NOT_CHECKPOINTS)
def test_what_is_no_checkpoint(data: bytes, reason: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert reason in refusal(tmp_path / name)


class Touch:
    """Pickles into a call that makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


CODE: dict[str, Callable[[object], bytes]] = {
    "pickle": pickle.dumps,
    "torch.save": torch_bytes,
    "legacy torch.save": lambda content: torch_bytes(content, as_zip=False),
}


@pytest.mark.parametrize("name", ["x.pth", "x.safetensors"])
@pytest.mark.parametrize("writer", CODE.values(), ids=CODE)
def test_code_in_a_file_does_not_run(writer: Callable[[object], bytes], name: str, tmp_path: Path) -> None:
    side_effect = tmp_path / "side_effect"
    pickle.loads(pickle.dumps(Touch(side_effect)))
    assert side_effect.exists(), "the pickle does nothing, so this test would prove nothing"
    side_effect.unlink()
    (tmp_path / name).write_bytes(writer(hooked_state_dict(small_parameters()) | {"extra": Touch(side_effect)}))
    assert "could run code" in refusal(tmp_path / name)
    assert not side_effect.exists(), "the file's code ran"


# Damage


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Good files that carry a checksum."""
    return {
        "own": own_bytes(tmp_path_factory.mktemp("whole")),
        "torch.save": torch_bytes(hooked_state_dict(small_parameters())),
    }


@pytest.mark.parametrize("kind", ["own", "torch.save"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_file(
    kind: str, share: float, whole_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "truncated"
    path.write_bytes(whole_files[kind][: int(share * len(whole_files[kind]))])
    refusal(path)


@pytest.mark.parametrize("kind", ["own", "torch.save"])
@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_damage_never_changes_the_weights(
    kind: str, data: st.DataObject, whole_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    damaged = bytearray(whole_files[kind])
    place = data.draw(st.integers(0, len(damaged) - 1), label="byte")
    damaged[place] ^= data.draw(st.integers(1, 255), label="flipped bits")
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(damaged)
    try:
        checkpoint = load_checkpoint(path)
    except InputError:
        refusal(path)
    else:
        assert checkpoint.sha256 == weights_sha256(small_parameters()), "damaged weights were accepted"


def test_damaged_weights_of_ours(tmp_path: Path) -> None:
    damaged = bytearray(own_bytes(tmp_path))
    damaged[-1] ^= 1
    (tmp_path / "x.safetensors").write_bytes(damaged)
    assert "damaged: the weights are not those that were saved" in refusal(tmp_path / "x.safetensors")


# State dicts that are not the model's

BAD_STATES: dict[str, tuple[Callable[[State], State], str]] = {
    "missing": (without("unembed.W_U"), "unembed.W_U is missing"),
    "missing embedding": (without("embed.W_E"), "embed.W_E is missing"),
    "many missing": (
        without(*(f"blocks.1.attn.W_{part}" for part in "QKVO")),
        "blocks.1.attn.W_Q, blocks.1.attn.W_K, blocks.1.attn.W_V and 1 more are missing",
    ),
    "second MLP missing": (without("blocks.1.mlp.W_in"), "blocks.1.mlp.W_in is missing"),
    "normalisation": (having("blocks.0.ln1.w", torch.ones(16)), "blocks.0.ln1.w is unknown"),
    "third layer": (having("blocks.2.attn.W_Q", torch.zeros(1, 16, 8)), "blocks.2.attn.W_Q is unknown"),
    "bias": (changed("blocks.0.attn.b_Q", filled(-0.5)), "blocks.0.attn.b_Q holds values up to 0.5, expected exactly"),
    "tiny bias": (changed("unembed.b_U", filled(1e-30)), "unembed.b_U holds values up to 1e-30"),
    "bias of NaN": (changed("blocks.1.mlp.b_out", filled(torch.nan)), "blocks.1.mlp.b_out holds values up to nan"),
    "first MLP": (changed("blocks.0.mlp.W_in", filled(2.0)), "blocks.0.mlp.W_in holds values up to 2"),
    "bias that is no tensor": (having("blocks.0.attn.b_Q", None), "blocks.0.attn.b_Q is a NoneType, expected a tensor"),
    "two heads": (
        changed("blocks.0.attn.W_Q", lambda w: w.repeat(2, 1, 1)),
        "blocks.0.attn.W_Q has shape (2, 16, 8), expected (1, 16, 8)",
    ),
    "other d_model": (changed("blocks.1.mlp.W_out", lambda w: w[:, 1:]), "has shape (32, 15), expected (32, 16)"),
    "other d_head": (changed("blocks.1.attn.W_O", lambda w: w[:, 1:]), "has shape (1, 7, 16), expected (1, 8, 16)"),
    "transposed": (changed("blocks.1.mlp.W_out", lambda w: w.T), "blocks.1.mlp.W_out has shape (16, 32)"),
    "axis less": (changed("blocks.0.attn.W_Q", lambda w: w[0]), "blocks.0.attn.W_Q has shape (16, 8), expected 3 axes"),
    "number": (changed("unembed.W_U", lambda w: w[0, 0]), "unembed.W_U has shape (), expected 2 axes"),
    "no variables": (changed("embed.W_E", lambda w: w[:10]), "10 embedded tokens, 8 positions and 7 classes make no"),
    "classes for all tokens": (having("unembed.W_U", torch.zeros(16, 15)), "make no assign-and-add task"),
    "no neurons": (changed("blocks.1.mlp.W_in", lambda w: w[:, :0]), "make no assign-and-add task: d_mlp is 0"),
    "short context": (changed("pos_embed.W_pos", lambda w: w[:5]), "15 embedded tokens, 5 positions"),
    "NaN": (changed("blocks.1.attn.W_V", filled(torch.nan)), "blocks.1.attn.W_V holds NaN or infinite"),
    "infinity": (changed("embed.W_E", filled(-torch.inf)), "embed.W_E holds NaN or infinite"),
    "too large for float32": (changed("embed.W_E", lambda w: w.double() * 1e300), "embed.W_E holds NaN or infinite"),
    "integers": (changed("embed.W_E", lambda w: w.long()), "embed.W_E is of torch.int64, expected floating-point"),
    "complex": (changed("embed.W_E", lambda w: w.to(torch.complex64)), "embed.W_E is of torch.complex64"),
    "sparse": (changed("embed.W_E", lambda w: w.to_sparse()), "embed.W_E is sparse"),
    "without data": (changed("embed.W_E", lambda w: w.to("meta")), "embed.W_E is sparse, quantized or without data"),
    "weights that are no tensor": (having("embed.W_E", [1.0]), "embed.W_E is a list, expected a tensor"),
}


@pytest.mark.parametrize(("change", "reason"), BAD_STATES.values(), ids=BAD_STATES)
def test_bad_hooked_transformer(change: Callable[[State], State], reason: str, tmp_path: Path) -> None:
    state: State = dict(hooked_state_dict(small_parameters()))
    (tmp_path / "x.pth").write_bytes(torch_bytes(change(state)))
    assert reason in refusal(tmp_path / "x.pth")


BAD_BRIDGES: dict[str, tuple[Callable[[State], State], str]] = {
    "missing": (without("unembed.weight"), "unembed.weight is missing"),
    "extra": (having("ln_final.weight", torch.ones(16)), "ln_final.weight is unknown"),
    "bias": (having("blocks.0.attn.q.bias", torch.ones(8)), "blocks.0.attn.q.bias holds values up to 1"),
    "first MLP": (having("blocks.0.mlp.in.weight", torch.ones(32, 16)), "blocks.0.mlp.in.weight holds values up to 1"),
    "shape": (changed("blocks.1.mlp.out.weight", lambda w: w.T), "has shape (32, 16), expected (16, 32)"),
    "embedding": (changed("pos_embed.weight", lambda w: w[:, 1:]), "has shape (8, 15), expected (8, 16)"),
    "heads": (changed("blocks.0.attn.q.weight", lambda w: w[None]), "has shape (1, 8, 16), expected 2 axes"),
    "NaN": (changed("blocks.0.attn.o.weight", filled(torch.nan)), "blocks.0.attn.o.weight holds NaN"),
    "mixed names": (having("embed.W_E", torch.zeros(15, 16)), "embed.W_E is unknown"),
}


@pytest.mark.parametrize(("change", "reason"), BAD_BRIDGES.values(), ids=BAD_BRIDGES)
def test_bad_transformer_bridge(change: Callable[[State], State], reason: str, tmp_path: Path) -> None:
    parameters = small_parameters()
    state: State = {BRIDGE.names[name]: _bridge_weight(name, value) for name, value in parameters.items()}
    (tmp_path / "x.pth").write_bytes(torch_bytes(state))
    assert load_checkpoint(tmp_path / "x.pth").sha256 == weights_sha256(parameters)
    (tmp_path / "x.pth").write_bytes(torch_bytes(change(state)))
    assert reason in refusal(tmp_path / "x.pth")


def _bridge_weight(name: str, value: Tensor) -> Tensor:
    if "embed." in name and "unembed" not in name:
        return value
    return (value[0] if value.ndim == 3 else value).T.contiguous()


# Splits


def test_split_that_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "x.pth").write_bytes(torch_bytes(small_parameters()))
    assert "unknown variable 'z'" in refusal(tmp_path / "x.pth", SplitConfig(never_left="z", never_right=""))
    assert "at least two letters" in refusal(tmp_path / "x.pth", SplitConfig(never_left="abcd", never_right=""))


def test_paper_split_that_leaves_too_few_letters(tmp_path: Path) -> None:
    task = TaskConfig(modulus=7, n_variables=3, max_assignments=2, n_ctx=8)
    (tmp_path / "x.pth").write_bytes(torch_bytes(small_parameters(0, task)))
    message = refusal(tmp_path / "x.pth")
    assert "give another (never_left is '', never_right 'ab'): never_left and never_right must leave" in message
    assert load_checkpoint(tmp_path / "x.pth", SplitConfig(never_left="", never_right="")).task == task


def test_sizes_of_the_small_model() -> None:
    assert (TASK.d_vocab, MODEL.d_model, MODEL.d_head, MODEL.d_mlp) == (15, 16, 8, 32), "the tables above count on it"
