"""Which runs a sweep makes: the grammar of `FIELD=VALUES`, and the grid of configs that it spans."""

from __future__ import annotations

import dataclasses
import itertools
import re
import types
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError

from aa_core.errors import InputError
from aa_core.seeds import parse_seeds
from aa_core.task.split import Split
from aa_core.training.config import TrainConfig

FRACTION = "split.train_fraction"
FREQUENCY = "split.two_variable_frequency"
NAMES: Mapping[str, str] = types.MappingProxyType({"f": FRACTION, "r": FREQUENCY})
RANGES: Mapping[str, tuple[float, float]] = types.MappingProxyType({FRACTION: (0.06, 0.99), FREQUENCY: (0.01, 0.99)})
POINTS = 20
MOST_POINTS = 10_000
DIGITS = 4  # significant, of the values of a range

Value = int | float | str


@dataclasses.dataclass(frozen=True)
class Axis:
    """A field of the config, dotted where it is nested, and the values that it takes, each once."""

    field: str
    values: tuple[Value, ...]


def parse_axis(text: str, points: int = POINTS) -> Axis:
    """An axis from `f`, `r` (the paper's sweeps, `points` values each) or `FIELD=VALUES`.

    FIELD is a field of `TrainConfig`, such as `learning_rate` or `split.train_fraction`, or `f` or `r`. VALUES are
    values separated by commas, `FIRST:LAST:N` for N values at equal distances (rounded to four significant digits),
    or, for a seed, what `--seeds` takes.

    Raises:
        InputError: there is no such field, it has no simple values, or the values are not of its kind.
    """
    name, sign, values = text.partition("=")
    field = NAMES.get(name, name)
    kind = _kind(field, text)
    if not sign:
        if field not in RANGES or name not in NAMES:
            raise InputError(f"{text!r}: expected f, r or FIELD=VALUES, such as learning_rate=1e-3,2e-3")
        return Axis(field, _range(*RANGES[field], points))
    if field.split(".")[-1] == "seed":
        return Axis(field, tuple(parse_seeds(values, f"{name} =")))
    if match := re.fullmatch(r"([^:,]+):([^:,]+):([0-9]{1,9})", values, re.ASCII):
        first, last = (_value(part, float, text) for part in match.groups()[:2])
        values_of_range = [str(value) for value in _range(first, last, int(match[3]))]
        parts = [value.removesuffix(".0") for value in values_of_range] if kind is int else values_of_range
    else:
        parts = values.split(",")
    return Axis(field, tuple(_unique([_value(part, kind, text) for part in parts], text)))


def grid(base: TrainConfig, axes: Sequence[Axis]) -> list[TrainConfig]:
    """`base` with every combination of the axes' values, the last axis changing fastest.

    Raises:
        InputError: a field has two axes, a value is out of range, a split leaves no pair, or there are too many.
    """
    _unique([axis.field for axis in axes], "sweep")
    if np.prod([float(len(axis.values)) for axis in axes]) > MOST_POINTS:
        raise InputError(f"the sweep has more than {MOST_POINTS} points: give fewer values")
    fields = [axis.field for axis in axes]
    configs = []
    for values in itertools.product(*(axis.values for axis in axes)):
        try:
            config = _replaced(base, dict(zip(fields, values, strict=True)))
            Split(config.task, config.split)  # refuse a bad one before the first is trained
        except InputError as error:
            raise InputError(f"{error} (what the sweep does not name is the recipe's)") from error
        configs.append(config)
    return configs


def field_value(config: Mapping[str, Any], field: str) -> Any:
    """A field, dotted where it is nested, of a config as plain data."""
    value: Any = config
    for name in field.split("."):
        value = value[name]
    return value


def flat_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Every field of a config as plain data by the name that `field_value` takes."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        inner = flat_fields(value) if isinstance(value, Mapping) else None
        flat |= {name: value} if inner is None else {f"{name}.{field}": item for field, item in inner.items()}
    return flat


def _kind(field: str, text: str) -> Any:
    """Type of a field that has simple values."""
    kind: Any = TrainConfig
    for name in field.split("."):
        fields = get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
        if name not in fields:
            nested = {part for part, of in fields.items() if dataclasses.is_dataclass(of)}
            known = ", ".join(f"{part}.FIELD" if part in nested else part for part in fields) or "none"
            raise InputError(f"{text!r}: the training config has no field {field}: no {name!r} among {known}")
        kind = fields[name]
    if dataclasses.is_dataclass(kind):
        own = ", ".join(f"{field}.{part}" for part in get_type_hints(kind))
        raise InputError(f"{text!r}: {field} has fields of its own: {own}; name one")
    if kind not in (int, float, str) and not all(isinstance(choice, str) for choice in get_args(kind)):
        raise InputError(f"{text!r}: {field} cannot be swept; expected a field that is a number or a word")
    return kind


def _value(text: str, kind: Any, whole: str) -> Any:
    try:
        return TypeAdapter(kind).validate_python(text.strip())
    except ValidationError as error:
        raise InputError(
            f"{whole!r}: {text!r}: {error.errors()[0]['msg']}; expected values such as 0.1,0.3 or FIRST:LAST:N"
        ) from error


def _range(first: float, last: float, points: int) -> tuple[float, ...]:
    if not 1 <= points <= MOST_POINTS:
        raise InputError(f"{points} points in a range, expected 1 to {MOST_POINTS}")
    if not np.isfinite([first, last]).all():
        raise InputError(f"a range from {first} to {last}, expected finite numbers")
    return tuple(float(f"{value:.{DIGITS}g}") for value in np.linspace(first, last, points))


def _unique(values: list[Any], where: str) -> list[Any]:
    twice = [value for index, value in enumerate(values) if value in values[:index]]
    if twice:
        raise InputError(f"{where!r} names {twice[0]} twice")
    return values


def _replaced(config: Any, values: Mapping[str, Value]) -> Any:
    """A config with fields, dotted where nested, replaced: all of one object at once, as they are checked together."""
    changes: dict[str, Any] = {}
    nested: dict[str, dict[str, Value]] = {}
    for field, value in values.items():
        name, dot, rest = field.partition(".")
        if dot:
            nested.setdefault(name, {})[rest] = value
        else:
            changes[name] = value
    changes |= {name: _replaced(getattr(config, name), inner) for name, inner in nested.items()}
    return dataclasses.replace(config, **changes)
