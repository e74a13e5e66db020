"""What Hypothesis searches for: layouts of small margin, and sequences that a model gets wrong."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, Phase, find, given, seed, settings, target
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import NoSuchExample

from aa_core.circuits.subject import Subject
from aa_core.generalisation.drawing import Region
from aa_core.generalisation.layout import Layout
from aa_core.generalisation.outcome import answered
from aa_core.generalisation.search import Score, score
from aa_core.generalisation.strategies import layouts_in, problems_in
from aa_core.task.problems import Problem, sequences_from_problems

QUIET = settings(deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow])


def scored_by_target(subject: Subject, region: Region, n: int, first_seed: int) -> list[tuple[Score, Layout]]:
    """Layouts that Hypothesis tries while it makes the margin small, with their scores, the worst first."""
    found: list[tuple[Score, Layout]] = []

    @seed(first_seed)
    @settings(QUIET, max_examples=n, database=None, phases=(Phase.generate, Phase.target))
    @given(layouts_in(region))
    def climb(layout: Layout) -> None:
        found.append((score(subject, region, layout), layout))
        target(-found[-1][0].margin)

    climb()
    return sorted(found, key=lambda entry: entry[0])


def wrong_sequence(
    subject: Subject, region: Region, n: int, *, database: Path | None = None, key: str = ""
) -> Problem | None:
    """A sequence of a region that the model gets wrong, as small as Hypothesis makes it.

    Args:
        subject: the model.
        region: which sequences.
        n: sequences to try before one is found.
        database: folder that keeps what was found for the next search; None to keep nothing, and to try the same
            sequences every time.
        key: what the model is called there.

    Returns:
        The sequence, None where none of those tried is wrong.
    """

    def wrong(problem: Problem) -> bool:
        margin = float(answered(subject, sequences_from_problems(subject.task, [problem])).margins[0])
        target(-margin)
        return not margin > 0

    kept = None if database is None else DirectoryBasedExampleDatabase(database)
    # Phase.explain is left out: it varies what was found, and `find` would give the last variation back.
    phases = (Phase.reuse, Phase.generate, Phase.target, Phase.shrink)
    try:
        return find(
            problems_in(region),
            wrong,
            settings=settings(QUIET, max_examples=n, database=kept, derandomize=kept is None, phases=phases),
            database_key=f"{key} {region}".encode(),
        )
    except NoSuchExample:
        return None
