"""Which letter on which side, or which pair of letters, is to blame for wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aa_core.circuits.subject import Subject
from aa_core.generalisation.drawing import Operands, Region
from aa_core.generalisation.outcome import answered
from aa_core.task.sampling import Kind
from aa_core.task.sequences import NO_VARIABLE, draw_sequences
from aa_core.task.training_data import draw_n_assignments

Progress = Callable[[Sequence[Operands]], Iterable[Operands]]

FAILING = 0.9  # in the paper's own late checkpoints what fails is at .00 to .85, the rest above .95
NEARLY_ALL = 0.8
KINDS_WITH = ((Kind.LEFT, Kind.TWO), (Kind.RIGHT, Kind.TWO))


@dataclass(frozen=True)
class Cause:
    """What fails, as far as one cause explains it.

    Attributes:
        region: the sequences that fail.
        accuracy: share of right answers there; the median over the choices of operand letters.
    """

    region: Region
    accuracy: float

    @property
    def text(self) -> str:
        """Such as `b on the right (1R, 2-var)`, `the pair l+a`, or `1L as a whole`."""
        left, right = self.region.left, self.region.right
        kinds = ", ".join(self.region.operands)
        if left is not None and right is not None:
            return f"the pair {left}+{right}"
        if left is None and right is None:
            return f"{kinds} as a whole"
        return f"{left} on the left ({kinds})" if right is None else f"{right} on the right ({kinds})"


@dataclass(frozen=True)
class RoleAccuracy:
    """Accuracy by the letters of the operands.

    Attributes:
        region: which sequences.
        accuracy: share of right answers by operand letters, over all pairs of values of the region.
    """

    region: Region
    accuracy: Mapping[Operands, float]

    def of(self, region: Region) -> list[float]:
        """Accuracies of the operand letters of a part of the region."""
        return [self.accuracy[letters] for kind in region.operands for letters in region.operands[kind]]

    def causes(self) -> list[Cause]:
        """Kinds that fail, then letters on a side, then single choices of letters that nothing before explains.

        A kind, or a letter on a side, fails where nearly all of its choices of operand letters do: one bad letter does
        not make a kind bad, nor one bad pair a letter. Each takes what it explains with it, the one that explains most
        first, and of those that explain as much, the worst.
        """
        unexplained, found = dict(self.accuracy), []
        for candidates in (self._kinds(), self._roles(), self._choices()):
            parts = {
                part: [letters for kind in part.operands for letters in part.operands[kind]] for part in candidates
            }
            while parts:
                failing = {
                    part: _Failing(values)
                    for part, choices in parts.items()
                    if (values := [unexplained[letters] for letters in choices if letters in unexplained])
                }
                worst = min(failing, key=lambda part: failing[part].rank, default=None)
                if worst is None or failing[worst].share < NEARLY_ALL:
                    break
                found.append(Cause(worst, failing[worst].median))
                for letters in parts.pop(worst):
                    unexplained.pop(letters, None)
        return found

    def _kinds(self) -> Iterator[Region]:
        for kind in self.region.operands:
            yield replace(self.region, kinds=(kind,))

    def _roles(self) -> Iterator[Region]:
        for side, name in enumerate(("left", "right")):
            kinds = tuple(kind for kind in KINDS_WITH[side] if kind in self.region.operands)
            for letter in sorted({letters[side] or "" for letters in self.accuracy} - {""}):
                yield replace(self.region, kinds=kinds, **{name: letter})

    def _choices(self) -> Iterator[Region]:
        for kind, choices in self.region.operands.items():
            for left, right in choices:
                yield replace(self.region, kinds=(kind,), left=left, right=right)


@dataclass(frozen=True)
class _Failing:
    """How much of what is left of a part fails, by the accuracies of its choices of operand letters."""

    accuracies: Sequence[float]

    @property
    def share(self) -> float:
        return float(np.mean(np.array(self.accuracies) < FAILING))

    @property
    def median(self) -> float:
        return float(np.median(self.accuracies))

    @property
    def rank(self) -> tuple[bool, float, float]:
        """First those that fail, by how much they explain, then by how bad they are."""
        return self.share < NEARLY_ALL, -self.share * len(self.accuracies), self.median


def role_accuracy(subject: Subject, region: Region, progress: Progress = iter) -> RoleAccuracy:
    """The accuracy for each choice of operand letters, on all pairs of values, each in a layout drawn for it."""
    choices = [letters for kind in region.operands for letters in region.operands[kind]]
    return RoleAccuracy(
        region, {letters: _accuracy(subject, region, letters, key) for key, letters in enumerate(progress(choices))}
    )


def _accuracy(subject: Subject, region: Region, letters: Operands, key: int) -> float:
    task, pairs = subject.task, region.pairs
    rng = np.random.default_rng(np.random.Philox(key=np.array([subject.data.seed, 5000 + key], dtype=np.uint64)))
    ends = [NO_VARIABLE if letter is None else task.variable_index(letter) for letter in letters]
    variables = np.tile(ends, (len(pairs), 1))
    n_assignments = draw_n_assignments(task, rng, variables)
    return float(answered(subject, draw_sequences(task, rng, pairs, variables, n_assignments)).correct.mean())
