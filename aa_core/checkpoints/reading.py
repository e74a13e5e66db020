"""Tensors out of the bytes of a file that nobody vouches for."""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from typing import NamedTuple

import safetensors.torch
import torch

from aa_core.errors import InputError

ZIP_MAGIC = b"PK\x03\x04"
PICKLE_MAGIC = b"\x80"
LENGTH_BYTES = 8  # a safetensors file starts with the length of its JSON header
WRAPPERS = ("model_state_dict", "state_dict")


class Content(NamedTuple):
    """What a file holds: named values, tensors if all is well, and a safetensors file's metadata."""

    tensors: Mapping[str, object]
    metadata: Mapping[str, str]


def read_content(data: bytes) -> Content:
    """Content of a safetensors file, or of a state dict that `torch.save` wrote, recognised by its first bytes.

    A state dict may be wrapped, as in `{"model_state_dict": ...}`. No code of the file runs. The checksums of
    `torch.save` are verified, which `torch.load` does not do.

    Raises:
        InputError: the file is empty, damaged, of another kind, or holds anything besides a dictionary by name.
    """
    if not data:
        raise InputError("the file is empty, expected a checkpoint; copy or write it again")
    if data.startswith(ZIP_MAGIC):
        return Content(_state_dict(data), {})
    if data[LENGTH_BYTES : LENGTH_BYTES + 1] == b"{":
        return _safetensors(data)
    if data.startswith(PICKLE_MAGIC):
        return Content(_state_dict(data), {})
    raise InputError("not a checkpoint, expected a safetensors file or a state dict written by torch.save")


def _safetensors(data: bytes) -> Content:
    # Damaged bytes can raise more than SafetensorError (an unknown dtype is a KeyError).
    try:
        tensors = safetensors.torch.load(data)
        end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
        metadata = json.loads(data[LENGTH_BYTES:end]).get("__metadata__", {})
    except Exception as error:
        raise InputError("damaged, truncated or not a safetensors file; copy or write it again") from error
    return Content(tensors, metadata)


def _state_dict(data: bytes) -> Mapping[str, object]:
    # Damaged bytes raise whatever the unpickler stumbles over, and warn about what is then refused.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if data.startswith(ZIP_MAGIC) and zipfile.ZipFile(io.BytesIO(data)).testzip():
                raise zipfile.BadZipFile("wrong checksum")
            content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InputError(
            "holds more than tensors, or is damaged; it was not loaded, since that could run code: "
            "save model.state_dict() alone with torch.save"
        ) from error
    except Exception as error:
        raise InputError("damaged, truncated or not written by torch.save; copy or write it again") from error
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not all(isinstance(name, str) for name in content):
        raise InputError(f"holds a {type(content).__name__}, expected a state dict: a dictionary of tensors by name")
    return content
