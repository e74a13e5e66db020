"""All invariants, and checking them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from aa_core.gate import distribution, forward, sampler, stored, updates
from aa_core.gate.invariant import Finding, Invariant, Outcome
from aa_core.gate.setting import VARIED, Setting

INVARIANTS: tuple[Invariant, ...] = (
    *sampler.INVARIANTS,
    *distribution.INVARIANTS,
    *forward.INVARIANTS,
    *updates.INVARIANTS,
    *stored.INVARIANTS,
)


Progress = Callable[[Sequence[Invariant], str], Iterable[Invariant]]
"""Wraps the iteration over invariants in a setting of some name, for a progress bar."""


def _quiet(invariants: Sequence[Invariant], setting: str) -> Iterable[Invariant]:
    return invariants


def check_training(setting: Setting, progress: Progress = _quiet) -> list[Outcome]:
    """Check all invariants in a setting and in a small one that varies what recipes leave alone.

    Args:
        setting: where, besides the small one.
        progress: of each.
    """
    return [
        *check_invariants(setting, INVARIANTS, progress),
        *check_invariants(VARIED, (*INVARIANTS, updates.SHORT_RUN), progress),
    ]


def check_invariants(
    setting: Setting,
    invariants: Sequence[Invariant] = INVARIANTS,
    progress: Progress = _quiet,
) -> list[Outcome]:
    """Check invariants in a setting, with draws made anew.

    Args:
        setting: where.
        invariants: which.
        progress: of the check.
    """
    fresh = dataclasses.replace(setting)
    return [Outcome(item.name, fresh.name, **vars(_finding(item, fresh))) for item in progress(invariants, fresh.name)]


def _finding(invariant: Invariant, setting: Setting) -> Finding:
    try:
        return invariant.check(setting)
    except Exception as error:  # whatever faulty training code raises is a finding, too
        return Finding(False, f"{type(error).__name__}: {' '.join(str(error).split())}")
