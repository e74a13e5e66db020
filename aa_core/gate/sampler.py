"""Invariants of the sampler: rows, labels, what training may never see, and the order of batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aa_core.gate.draws import reference_seen
from aa_core.gate.invariant import Finding, Invariant, first_fault
from aa_core.gate.setting import Setting
from aa_core.task.sequences import Sequences
from aa_core.task.split import Split
from aa_core.task.training_data import training_batch

SIDES = ("left", "right")
FIELDS = ("tokens", "answers", "values", "variables", "sources")
REPEATS = 200


def well_formed(setting: Setting) -> Finding:
    """Rows that are no sequence of the task."""

    def faults() -> Iterator[str]:
        for name, batch, read in _both(setting):
            bad = np.flatnonzero(~read.well_formed)
            if len(bad):
                yield f"{len(bad)} of {len(batch)} {name} rows are no sequence, such as {batch.tokens[bad[0]].tolist()}"

    return first_fault(faults(), f"{len(setting.drawn) + len(setting.reached):,} rows")


def labels(setting: Setting) -> Finding:
    """Answers against the constants in the tokens."""

    def faults() -> Iterator[str]:
        for name, batch, read in _both(setting):
            right = read.values.sum(axis=1) % setting.config.task.modulus
            bad = np.flatnonzero(batch.answers != right)
            if len(bad):
                shown = f"{batch.answers[bad[0]]} for {read.values[bad[0], 0]}+{read.values[bad[0], 1]}"
                yield f"{len(bad)} of {len(batch)} {name} labels are wrong, such as {shown}"

    return first_fault(faults(), f"{len(setting.drawn) + len(setting.reached):,} labels")


def fields(setting: Setting) -> Finding:
    """What comes with the tokens against the tokens."""

    def faults() -> Iterator[str]:
        for name, batch, read in _both(setting):
            for field in ("values", "variables", "sources"):
                bad = (getattr(batch, field) != getattr(read, field)).any(axis=1).sum()
                if bad:
                    yield f"{field} of {bad} of {len(batch)} {name} rows are not what the tokens say"

    return first_fault(faults(), "values, variables and sources are what the tokens say")


def split_pairs(setting: Setting) -> Finding:
    """The training pairs against the paper's draw of them."""
    split, reference = setting.split, reference_seen(setting.config.task, setting.config.split)
    moved = int((split.seen != reference).sum())

    def faults() -> Iterator[str]:
        if moved:
            yield f"{moved} pairs changed sides between training and held out"
        if not np.array_equal(split.seen_pairs, np.argwhere(reference)):
            yield "seen_pairs are not the training pairs"
        if not np.array_equal(split.held_out_pairs, np.argwhere(~reference)):
            yield "held_out_pairs are not the others"

    return first_fault(faults(), f"{reference.sum():,} of {reference.size:,} pairs in training")


def held_out_pairs(setting: Setting) -> Finding:
    """Every pair that the sampler can reach, and every pair drawn, against the held-out ones."""
    seen = reference_seen(setting.config.task, setting.config.split)

    def faults() -> Iterator[str]:
        for name, _, read in _both(setting):
            leaked = read.values[~seen[tuple(read.values.T)]]
            if len(leaked):
                distinct = np.unique(leaked, axis=0)
                yield (
                    f"{len(distinct)} of {(~seen).sum():,} held-out pairs are {name}, such as "
                    f"{tuple(map(int, distinct[0]))}"
                )

    return first_fault(faults(), f"none of {(~seen).sum():,} held-out pairs can be drawn")


def restricted_letters(setting: Setting) -> Finding:
    """Every letter that the sampler can reach on a side against those it never puts there."""
    task, split = setting.config.task, setting.config.split

    def faults() -> Iterator[str]:
        for name, _, read in _both(setting):
            for side, never in enumerate((split.never_left, split.never_right)):
                used = {task.variables[letter] for letter in np.unique(read.variables[:, side]) if letter >= 0}
                if used & set(never):
                    yield f"{', '.join(sorted(used & set(never)))} {name} on the {SIDES[side]}"

    return first_fault(faults(), f"{split.never_left} never left, {split.never_right} never right")


def reseeding(setting: Setting) -> Finding:
    """Batches of equal and of different seeds and numbers."""
    split, seed, size = setting.split, setting.config.seed, setting.config.batch_size
    first = training_batch(split, seed, 1, size)

    def faults() -> Iterator[str]:
        if not _equal(first, training_batch(Split(split.task, split.config), seed, 1, size)):
            yield f"batch 1 of seed {seed} differs when it is drawn again"
        for index in (0, 2, setting.config.steps - 1):
            if _equal(first, training_batch(split, seed, index, size)):
                yield f"batch {index} is batch 1 again"
        for other in (seed + 1, seed + 1000):
            if _equal(first, training_batch(split, other, 1, size)):
                yield f"batch 1 of seed {other} is that of seed {seed}"
        distinct = {training_batch(split, seed, index, 8).tokens.tobytes() for index in range(REPEATS)}
        if len(distinct) < REPEATS:
            yield f"only {len(distinct)} different batches among {REPEATS}"

    return first_fault(faults(), f"{REPEATS} batches differ, and other seeds give others")


def _both(setting: Setting) -> tuple:
    return ("drawn", setting.drawn, setting.read), ("reachable", setting.reached, setting.read_reached)


def _equal(a: Sequences, b: Sequences) -> bool:
    return all(np.array_equal(getattr(a, field), getattr(b, field)) for field in FIELDS)


INVARIANTS = (
    Invariant("split/pairs", "the split holds out the pairs that its seed says", split_pairs),
    Invariant("sampler/well-formed", "every row drawn is a sequence of the task", well_formed),
    Invariant("sampler/labels", "the label is the sum of the operands' values", labels),
    Invariant("sampler/fields", "values, letters and sources are what the tokens say", fields),
    Invariant("sampler/held-out-pairs", "no held-out pair can be drawn", held_out_pairs),
    Invariant("sampler/restricted-letters", "no restricted letter can be drawn on its side", restricted_letters),
    Invariant("sampler/reseeding", "a batch is a function of seed and number, and differs with each", reseeding),
)
