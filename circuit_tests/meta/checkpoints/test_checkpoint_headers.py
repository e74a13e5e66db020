"""Our header is checked key by key, and nothing is written that could not be loaded."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from aa_core.checkpoints import load_checkpoint, save_checkpoint, weights_sha256
from aa_core.checkpoints.header import Header
from aa_core.errors import InputError
from circuit_tests.meta.checkpoint_files import (
    State,
    changed,
    filled,
    having,
    refusal,
    small_config,
    small_parameters,
    without,
)


def own_file(path: Path, header: str, key: str = "assign-and-add/1") -> Path:
    """One of our files with another header."""
    path.write_bytes(safetensors.torch.save(small_parameters(), {key: header}))
    return path


def header_json(**changes: object) -> str:
    """A good header with some keys changed."""
    header = Header(25, "custom", small_config(), weights_sha256(small_parameters()))
    return json.dumps(dataclasses.asdict(header) | changes)


CONFIG = dataclasses.asdict(small_config())
BAD_HEADERS: dict[str, tuple[str, str]] = {
    "no json": ("{", "header: the whole: Invalid JSON"),
    "deep json": ("[" * 100_000, "header: the whole: Invalid JSON"),
    "empty": ("", "header: the whole: Invalid JSON"),
    "list": ("[]", "header: the whole: Input should be an object"),
    "missing": (json.dumps({"step": 1}), "header: recipe: Field required"),
    "unknown": (header_json(colour="red"), "header: colour: Unexpected keyword argument"),
    "unknown in config": (header_json(config=CONFIG | {"dropout": 0.1}), "header: config.dropout: Unexpected"),
    "unknown in task": (
        header_json(config=CONFIG | {"task": CONFIG["task"] | {"carry": 1}}),
        "header: config.task.carry: Unexpected",
    ),
    "text for a number": (header_json(step="25"), "header: step: Input should be a valid integer"),
    "truth for a number": (header_json(step=True), "header: step: Input should be a valid integer"),
    "negative step": (header_json(step=-1), "step is -1, expected at least 0"),
    "out of range": (header_json(config=CONFIG | {"steps": 0}), "header: config: Value error, steps is 0"),
    "not finite": (header_json(config=CONFIG | {"eps": float("nan")}), "eps is nan, expected above 0"),
    "unknown precision": (header_json(config=CONFIG | {"precision": "float8"}), "header: config.precision: Input"),
    "other sizes": (
        header_json(config=CONFIG | {"model": CONFIG["model"] | {"d_mlp": 33}}),
        "blocks.1.mlp.W_in has shape (16, 32), expected (16, 33)",
    ),
    "letters that do not exist": (
        header_json(config=CONFIG | {"split": CONFIG["split"] | {"never_left": "z"}}),
        "the split does not fit the task, give another (never_left is 'z', never_right 'b'): unknown variable 'z'",
    ),
    "hash of other weights": (header_json(sha256=weights_sha256(small_parameters(1))), "damaged: the weights are not"),
    "no hash": (header_json(sha256=""), "damaged: the weights are not"),
}


def test_good_header(tmp_path: Path) -> None:
    assert load_checkpoint(own_file(tmp_path / "x", header_json())).step == 25


@pytest.mark.parametrize(("header", "reason"), BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_bad_header(header: str, reason: str, tmp_path: Path) -> None:
    assert reason in refusal(own_file(tmp_path / "x.safetensors", header))


@pytest.mark.parametrize("version", ["2", "", "future"])
def test_other_version(version: str, tmp_path: Path) -> None:
    path = own_file(tmp_path / "x.safetensors", header_json(), key=f"assign-and-add/{version}")
    assert f"written in version {version} of the assign-and-add format" in refusal(path)


def test_our_files_hold_nothing_else(tmp_path: Path) -> None:
    state = small_parameters() | {"unembed.b_U": torch.zeros(7)}
    path = tmp_path / "x.safetensors"
    path.write_bytes(safetensors.torch.save(state, {"assign-and-add/1": header_json()}))
    assert "unembed.b_U is unknown" in refusal(path)


# What is refused for writing


@pytest.mark.parametrize(
    ("change", "step", "reason"),
    {
        "NaN": (changed("embed.W_E", filled(torch.nan)), 25, "embed.W_E holds NaN or infinite"),
        "shape": (changed("embed.W_E", lambda w: w[1:]), 25, "embed.W_E has shape (14, 16), expected (15, 16)"),
        "missing": (without("embed.W_E"), 25, "embed.W_E is missing"),
        "extra": (having("x", torch.zeros(2)), 25, "x is unknown"),
        "step": (without(), -1, "step is -1"),
    }.values(),
)
def test_what_could_not_be_loaded_is_not_written(
    change: Callable[[State], State], step: int, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(InputError) as caught:
        save_checkpoint(path, change(dict(small_parameters())), small_config(), step)  # pyright: ignore[reportArgumentType]
    assert f"cannot save {path}: {reason}" in str(caught.value)
    assert not list(tmp_path.iterdir()), "something was written"


def test_no_place_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot write"):
        save_checkpoint(tmp_path / "file" / "x.safetensors", small_parameters(), small_config(), 25)
