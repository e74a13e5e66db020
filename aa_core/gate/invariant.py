"""What an invariant of training is, and what checking one gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aa_core.gate.setting import Setting


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        ok: whether the invariant holds.
        figures: what was compared, with numbers; where it does not hold, what moved.
    """

    ok: bool
    figures: str


@dataclass(frozen=True)
class Invariant:
    """Something that is true of training whatever the seed.

    Attributes:
        name: `area/what would have moved`.
        statement: the invariant in one sentence.
        check: a pure function of the setting.
    """

    name: str
    statement: str
    check: Callable[[Setting], Finding]


@dataclass(frozen=True)
class Outcome:
    """An invariant as it was checked in one setting.

    Attributes:
        name: of the invariant.
        setting: name of the setting.
        ok: whether it holds.
        figures: see `Finding`.
    """

    name: str
    setting: str
    ok: bool
    figures: str


def first_fault(faults: Iterator[str], fine: str) -> Finding:
    """The first fault that there is, or that all is fine."""
    fault = next(faults, None)
    return Finding(fault is None, fault or fine)
