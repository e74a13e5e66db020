"""What a search found, as plain data: what `aa search --json` writes and `--replay` reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from aa_core.circuits.subject import Subject
from aa_core.errors import InputError
from aa_core.files import read_bytes
from aa_core.generalisation.drawing import Region
from aa_core.generalisation.layout import Layout, parse_layout
from aa_core.generalisation.outcome import answered
from aa_core.generalisation.search import Score, score
from aa_core.task.problems import Problem, parse_problem, sequences_from_problems
from aa_core.task.sampling import Kind
from aa_core.task.split import Split

ROUNDED = 1.5  # answers that may differ, since a margin near 0 can fall to either side of it on another processor


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LayoutRecord(_Record):
    """A layout, and the share of the pairs of operand values that are answered right."""

    text: str
    accuracy: float


class SequenceRecord(_Record):
    """A sequence, the right answer and the model's; None where the right one ties, or logits are not finite."""

    text: str
    answer: int
    model: int | None

    @property
    def answers(self) -> str:
        """Both answers, such as `model 3, true 4`."""
        return f"model {'undecided' if self.model is None else self.model}, true {self.answer}"


class FailureRecord(_Record):
    """A wrong sequence of a part of the task.

    Attributes:
        sequence: the sequence.
        smallest: no smaller one of that part is wrong, in the order of `aa_core.generalisation.smallest`; else it was
            found by a search and made small.
    """

    sequence: SequenceRecord
    smallest: bool


class KindRecord(_Record):
    """What was found in one kind of sequence.

    Attributes:
        kind: the kind.
        random: the worst of the layouts that were drawn at random.
        target: the worst of those that Hypothesis tried, among sequences with the letters that fail most.
        worst: the worst of all, after small steps.
        example: the sequence of the worst layout with the smallest operand values that is wrong; None if none is.
        failure: a wrong sequence of the kind; None if none was found.
    """

    kind: Kind
    random: LayoutRecord
    target: LayoutRecord
    worst: LayoutRecord
    example: SequenceRecord | None
    failure: FailureRecord | None


class CauseRecord(_Record):
    """What fails, the median accuracy there, and a wrong sequence; None if none was found."""

    text: str
    accuracy: float
    failure: FailureRecord | None


class LettersRecord(_Record):
    """Accuracy with given operand letters, None for a constant."""

    left: str | None
    right: str | None
    accuracy: float


class SearchRecord(_Record):
    """A search.

    Attributes:
        subject: what was searched.
        restricted: see `Region`.
        held_out: see `Region`.
        n_pairs: pairs of operand values that each accuracy is a share of.
        max_assignments: most assignments of a layout.
        budget: layouts tried at random, by target and by steps, each, for each kind.
        search_seed: seed of the search.
        letters: accuracy by operand letters.
        causes: what fails, those that explain most.
        n_causes: how many there are in all.
        kinds: what was found in each kind.
    """

    subject: dict[str, Any]
    restricted: int | None
    held_out: bool | None
    n_pairs: int
    max_assignments: int
    budget: int
    search_seed: int
    letters: tuple[LettersRecord, ...]
    causes: tuple[CauseRecord, ...]
    n_causes: int
    kinds: tuple[KindRecord, ...]

    def region(self, split: Split) -> Region:
        """The region that was searched, under a split."""
        kinds = tuple(record.kind for record in self.kinds)
        return Region(split, kinds, self.restricted, self.held_out)

    @property
    def sequences(self) -> list[SequenceRecord]:
        """All sequences found wrong, each once."""
        failures = [record.failure for record in (*self.causes, *self.kinds)]
        found = [failure.sequence for failure in failures if failure is not None]
        found += [kind.example for kind in self.kinds if kind.example is not None]
        return list(dict.fromkeys(found))


def layout_record(subject: Subject, found: tuple[Score, Layout]) -> LayoutRecord:
    """A layout with its score."""
    return LayoutRecord(text=found[1].text(subject.task), accuracy=found[0].accuracy)


def sequence_record(subject: Subject, problem: Problem) -> SequenceRecord:
    """A sequence with the model's answer to it."""
    answers, margins = answered(subject, sequences_from_problems(subject.task, [problem]))
    decided = margins[0] > 0 or margins[0] < 0  # nan is neither
    model = int(answers[0]) if decided else None
    return SequenceRecord(text=problem.text(subject.task), answer=problem.answer(subject.task), model=model)


def load_search(path: Path) -> SearchRecord:
    """Read what `aa search --json` wrote.

    Raises:
        InputError: the file cannot be read, or is something else.
    """
    try:
        return SearchRecord.model_validate_json(read_bytes(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"{path} is not a file of aa search --json: {where}: {first['msg']}") from error


class Replayed(NamedTuple):
    """A finding judged again: a line that says how it went, and whether it went as recorded."""

    text: str
    same: bool


def replayed(record: SearchRecord, subject: Subject) -> Iterator[Replayed]:
    """Every layout and sequence of a record judged again, on any model of the same task.

    Raises:
        InputError: a layout or a sequence is not of the model's task.
    """
    region = record.region(subject.split)
    for kind in record.kinds:
        for found in (kind.random, kind.target, kind.worst):
            now = score(subject, region, parse_layout(subject.task, found.text)).accuracy
            same = abs(now - found.accuracy) * len(region.pairs) <= ROUNDED
            yield Replayed(f"{found.accuracy:.4f} then, {now:.4f} now: {found.text}", same)
    for sequence in record.sequences:
        now = sequence_record(subject, parse_problem(subject.task, sequence.text))
        yield Replayed(f"{sequence.answers} then, {now.answers} now: {sequence.text}", now == sequence)
