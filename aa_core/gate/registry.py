"""All invariants, and checking them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from aa_core.gate import distribution, forward, sampler, updates
from aa_core.gate.invariant import Finding, Invariant, Outcome
from aa_core.gate.setting import VARIED, Setting

INVARIANTS: tuple[Invariant, ...] = (
    *sampler.INVARIANTS,
    *distribution.INVARIANTS,
    *forward.INVARIANTS,
    *updates.INVARIANTS,
)


def check_training(
    setting: Setting, progress: Callable[[Iterable[Invariant]], Iterable[Invariant]] = lambda invariants: invariants
) -> list[Outcome]:
    """Check all invariants in a setting and in a small one that varies what recipes leave alone.

    Args:
        setting: where, besides the small one.
        progress: wraps the iterations, for a progress bar.
    """
    return [
        *check_invariants(setting, INVARIANTS, progress),
        *check_invariants(VARIED, (*INVARIANTS, updates.SHORT_RUN), progress),
    ]


def check_invariants(
    setting: Setting,
    invariants: Sequence[Invariant] = INVARIANTS,
    progress: Callable[[Iterable[Invariant]], Iterable[Invariant]] = lambda invariants: invariants,
) -> list[Outcome]:
    """Check invariants in a setting, with draws made anew.

    Args:
        setting: where.
        invariants: which.
        progress: wraps the iteration, for a progress bar.
    """
    fresh = dataclasses.replace(setting)
    return [Outcome(item.name, fresh.name, **vars(_finding(item, fresh))) for item in progress(invariants)]


def _finding(invariant: Invariant, setting: Setting) -> Finding:
    try:
        return invariant.check(setting)
    except Exception as error:  # whatever faulty training code raises is a finding, too
        return Finding(False, f"{type(error).__name__}: {' '.join(str(error).split())}")
