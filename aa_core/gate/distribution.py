"""Invariants of the sampler: how often it draws what."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import stats

from aa_core.gate.draws import reference_seen
from aa_core.gate.invariant import Finding, Invariant, first_fault
from aa_core.gate.law import departure, uniform_departure
from aa_core.gate.setting import Setting
from aa_core.task.sequences import NO_VARIABLE

KIND_NAMES = ("0-var", "1L", "1R", "2-var")
SIDES = ("left", "right")


def training_pairs(setting: Setting) -> Finding:
    """Pairs against the uniform law over the training pairs."""
    seen = reference_seen(setting.config.task, setting.config.split)
    counts = np.zeros(seen.shape, dtype=np.int64)
    np.add.at(counts, tuple(setting.read.values.T), 1)

    def faults() -> Iterator[str]:
        reached = np.zeros_like(seen)
        reached[tuple(setting.read_reached.values.T)] = True
        if (missing := int((seen & ~reached).sum())) > 0:
            yield f"{missing} of {seen.sum():,} training pairs are never drawn"
        yield from filter(None, [departure(counts.ravel(), seen.ravel() / seen.sum())])

    return first_fault(faults(), f"{seen.sum():,} pairs uniform in {counts.sum():,} draws")


def operand_letters(setting: Setting) -> Finding:
    """Operand letters against the uniform law over the allowed ones."""
    allowed = _allowed(setting)

    def faults() -> Iterator[str]:
        for kind, side in ((1, 0), (2, 1), (3, 0)):
            letters = setting.read.variables[setting.kinds == kind, side]
            yield from _named(
                KIND_NAMES[kind], departure(_counts(letters, setting), allowed[side] / allowed[side].sum())
            )
        pairs = np.outer(allowed[0], allowed[1]) * ~np.eye(len(allowed[0]), dtype=bool)
        law = pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1) / allowed[0].sum()
        both = setting.read.variables[setting.kinds == 3]
        if len(both):
            codes = both @ [len(allowed[0]), 1]
            yield from _named("pairs of letters", departure(np.bincount(codes, minlength=law.size), law.ravel()))

    return first_fault(faults(), f"{allowed[0].sum()} letters uniform on the left, {allowed[1].sum()} on the right")


def kind_weights(setting: Setting) -> Finding:
    """Kinds against the weights that the split's frequencies give them."""
    split, (left, right) = setting.config.split, (int(letters.sum()) for letters in _allowed(setting))
    one, two = split.one_variable_frequency, split.two_variable_frequency
    weights = np.array([setting.config.task.n_variables, left * one, right * one, left * two])
    counts = np.bincount(setting.kinds, minlength=4)
    shares = ", ".join(f"{name} {n / counts.sum():.3f}" for name, n in zip(KIND_NAMES, counts, strict=True))
    expected = " : ".join(f"{weight:g}" for weight in weights)
    fault = departure(counts, weights / weights.sum())
    return Finding(not fault, f"{shares}, expected {expected}{f'; {fault}' if fault else ''}")


def assignments(setting: Setting) -> Finding:
    """Numbers of assignments against the uniform law, with 1 raised to 2 for two variables."""
    most = setting.config.task.max_assignments

    def faults() -> Iterator[str]:
        for name, of_kind, least in (("0-var and 1-var", setting.kinds < 3, 1), ("2-var", setting.kinds == 3, 2)):
            if of_kind.any():
                law = np.bincount(np.maximum(np.arange(1, most + 1), least), minlength=most + 1) / most
                found = setting.read.n_assignments[of_kind]
                counts = np.bincount(found, minlength=most + 1)
                yield from _named(f"{name}, {found.mean():.2f} assignments on average", departure(counts, law))

    return first_fault(faults(), f"uniform on 1 to {most}")


def distractor_letters(setting: Setting) -> Finding:
    """The first distractor's letter against the uniform law over the letters that are no operand."""
    read, n_letters = setting.read, setting.config.task.n_variables
    distractors = _is_distractor(setting)
    rows = np.flatnonzero(distractors.any(axis=1))
    letters = read.letters[rows, distractors[rows].argmax(axis=1)]
    # Rank of the letter among those that are no operand of its row: uniform whatever the operands.
    operands = read.variables[rows]
    rank = letters - ((operands != NO_VARIABLE) & (operands < letters[:, None])).sum(axis=1)
    n_others = n_letters - (operands != NO_VARIABLE).sum(axis=1)

    def faults() -> Iterator[str]:
        for n in np.unique(n_others):
            yield from _named(f"{n_letters - n} operand letters", uniform_departure(rank[n_others == n], int(n)))
        if not len(rows):
            yield f"no distractor in {len(setting.drawn):,} sequences"

    return first_fault(faults(), f"uniform over the other letters in {len(rows):,} sequences")


def distractor_values(setting: Setting) -> Finding:
    """The first distractor's value against the uniform law, alone and relative to each operand's value."""
    read, modulus = setting.read, setting.config.task.modulus
    distractors = _is_distractor(setting)
    rows = np.flatnonzero(distractors.any(axis=1))
    values = read.constants[rows, distractors[rows].argmax(axis=1)]

    def faults() -> Iterator[str]:
        if not len(rows):
            yield f"no distractor in {len(setting.drawn):,} sequences"
        else:
            yield from _named("values", uniform_departure(values, modulus))
            for side in (0, 1):
                relative = (values - read.values[rows, side]) % modulus
                yield from _named(f"values less the {SIDES[side]} operand", uniform_departure(relative, modulus))

    return first_fault(faults(), f"uniform on 0 to {modulus - 1}, whatever the operands")


def order(setting: Setting) -> Finding:
    """The operand's place among the assignments against the uniform law."""
    read = setting.read

    def faults() -> Iterator[str]:
        for kind, side in ((1, 0), (2, 1), (3, 0), (3, 1)):
            place = (read.letters == read.variables[:, side, None]).argmax(axis=1)
            for n in range(2, setting.config.task.max_assignments + 1):
                chosen = place[(setting.kinds == kind) & (read.n_assignments == n)]
                if len(chosen):
                    what = f"place of the {SIDES[side]} operand of {KIND_NAMES[kind]} among {n}"
                    yield from _named(what, uniform_departure(chosen, n))

    return first_fault(faults(), "every place of an operand is as likely")


def gaps(setting: Setting) -> Finding:
    """PADs in each gap against the binomial law."""
    read, task = setting.read, setting.config.task
    ends = np.pad(read.starts, ((0, 0), (1, 0)), constant_values=-2)
    sizes = np.diff(ends, axis=1) - 2

    def faults() -> Iterator[str]:
        for n in range(1, task.max_assignments + 1):
            n_pads = task.prefix_length - 2 * n
            chosen = sizes[read.n_assignments == n]
            law = stats.binom.pmf(np.arange(n_pads + 1), n_pads, 1 / (n + 1))
            for gap in range(n + 1 if len(chosen) else 0):
                counts = np.bincount(chosen[:, gap], minlength=n_pads + 1)
                yield from _named(f"PADs in gap {gap} of {n + 1}", departure(counts, law / law.sum()))

    return first_fault(faults(), "each PAD picks a gap uniformly")


def _named(what: str, fault: str) -> list[str]:
    return [f"{what}: {fault}"] if fault else []


def _allowed(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Which letters training may put on each side, without the help of `Split`."""
    split, letters = setting.config.split, setting.config.task.variables
    left, right = (
        np.array([letter not in never for letter in letters]) for never in (split.never_left, split.never_right)
    )
    return left, right


def _counts(letters: np.ndarray, setting: Setting) -> np.ndarray:
    return np.bincount(letters, minlength=setting.config.task.n_variables)


def _is_distractor(setting: Setting) -> np.ndarray:
    """Which slots hold a letter that is no operand."""
    letters, operands = setting.read.letters, setting.read.variables
    return (letters != NO_VARIABLE) & (letters[:, :, None] != operands[:, None, :]).all(axis=2)


INVARIANTS = (
    Invariant("sampler/training-pairs", "the training pairs are uniform", training_pairs),
    Invariant("sampler/operand-letters", "the allowed letters are uniform", operand_letters),
    Invariant("sampler/kinds", "kinds have the law's weights", kind_weights),
    Invariant("sampler/assignments", "the number of assignments is uniform", assignments),
    Invariant("sampler/distractor-letters", "distractor letters are uniform", distractor_letters),
    Invariant("sampler/distractor-values", "distractor values are uniform", distractor_values),
    Invariant("sampler/order", "the order of assignments is uniform", order),
    Invariant("sampler/gaps", "PADs are spread uniformly over the gaps", gaps),
)
