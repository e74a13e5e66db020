"""Everything `aa search` looks for: who is to blame, the worst layouts, small wrong sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aa_core.circuits.subject import Subject
from aa_core.generalisation.diagnosis import RoleAccuracy, role_accuracy
from aa_core.generalisation.drawing import Region
from aa_core.generalisation.hypothesis_search import scored_by_target, wrong_sequence
from aa_core.generalisation.records import (
    CauseRecord,
    FailureRecord,
    KindRecord,
    LettersRecord,
    SearchRecord,
    layout_record,
    sequence_record,
)
from aa_core.generalisation.search import scored_at_random, scored_step_by_step
from aa_core.generalisation.smallest import first_wrong, simplified, smallest_wrong
from aa_core.task.problems import Problem
from aa_core.task.sampling import Kind

MOST_CAUSES = 8  # an untrained model has a cause for everything
TRIES = 1000  # sequences, before a wrong one is given up


@dataclass(frozen=True)
class Search:
    """A search for where a model fails.

    Attributes:
        subject: the model.
        region: where to look.
        budget: layouts to try at random, by target and by steps, each, for each kind.
        seed: seed of the search for layouts.
        database: folder in which Hypothesis keeps wrong sequences; None to keep nothing, and to try the same every
            time.
        key: what the model is called there.
    """

    subject: Subject
    region: Region
    budget: int
    seed: int
    database: Path | None = None
    key: str = ""

    def run(self, record: dict[str, Any], progress: Callable[[Sequence[Any], str], Iterable[Any]]) -> SearchRecord:
        """Search.

        Args:
            record: what the report says of the model.
            progress: iterates over the parts of a stage of the given title.
        """
        roles = role_accuracy(self.subject, self.region, lambda choices: progress(choices, "letters"))
        causes = roles.causes()
        return SearchRecord(
            subject=record,
            restricted=self.region.restricted,
            held_out=self.region.held_out,
            n_pairs=len(self.region.pairs),
            max_assignments=self.region.task.max_assignments,
            budget=self.budget,
            search_seed=self.seed,
            letters=tuple(
                LettersRecord(left=left, right=right, accuracy=accuracy)
                for (left, right), accuracy in roles.accuracy.items()
            ),
            causes=tuple(
                CauseRecord(text=cause.text, accuracy=cause.accuracy, failure=self._failure(cause.region, cause.region))
                for cause in progress(causes[:MOST_CAUSES], "causes")
            ),
            n_causes=len(causes),
            kinds=tuple(self._kind(kind, roles) for kind in progress(list(self.region.operands), "kinds")),
        )

    def _kind(self, kind: Kind, roles: RoleAccuracy) -> KindRecord:
        region = replace(self.region, kinds=(kind,))
        left, right = min(region.operands[kind], key=lambda letters: roles.accuracy[letters])
        at_random = scored_at_random(self.subject, region, self.budget, self.seed)
        by_target = scored_by_target(self.subject, replace(region, left=left, right=right), self.budget, self.seed)
        score, worst = scored_step_by_step(self.subject, region, [*at_random, *by_target], self.budget, self.seed)[0]
        example = first_wrong(self.subject, region, worst)
        likely = replace(region, left=worst.left, right=worst.right)
        return KindRecord(
            kind=kind,
            random=layout_record(self.subject, at_random[0]),
            target=layout_record(self.subject, by_target[0]),
            worst=layout_record(self.subject, (score, worst)),
            example=None if example is None else sequence_record(self.subject, example),
            failure=self._failure(region, likely, example),
        )

    def _failure(self, region: Region, likely: Region, known: Problem | None = None) -> FailureRecord | None:
        """The smallest wrong sequence of a region; where no plain one is wrong, one from a part where some likely are.

        Args:
            region: which sequences.
            likely: where to search.
            known: a wrong sequence of the region, for a search that finds none.
        """
        found = smallest_wrong(self.subject, region)
        if found is not None:
            return FailureRecord(sequence=sequence_record(self.subject, found), smallest=True)
        found = self._wrong(likely) or known
        if found is None:
            return None
        return FailureRecord(sequence=sequence_record(self.subject, simplified(self.subject, found)), smallest=False)

    def _wrong(self, region: Region) -> Problem | None:
        for kind in region.operands:  # those with fewer variables first
            part = replace(region, kinds=(kind,))
            found = wrong_sequence(self.subject, part, TRIES, database=self.database, key=self.key)
            if found is not None:
                return found
        return None
