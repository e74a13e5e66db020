"""The smallest wrong sequence, exactly, where a plain one is wrong.

Plain sequences have no assignment but those of their operands (0-var: one, since training always shows one), and the
PADs of text without `_`. They come before all others, and are ordered by kind (0-var, 1L, 1R, 2-var), then by
operand letters (left, right), then by assignments (2-var: the left operand's first, then the right operand's; 0-var:
letter, value), then by operand values (left, right). They are few, so all of them are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations

from aa_core.circuits.subject import Subject
from aa_core.generalisation.drawing import Operands, Region
from aa_core.generalisation.layout import Layout, Mark
from aa_core.generalisation.outcome import answered
from aa_core.task.config import TaskConfig
from aa_core.task.problems import PAD_SIGN, Problem, default_layout, sequences_from_problems

ORDER = f"no assignment but the operands' (0-var: one) and PADs as without {PAD_SIGN}; then by kind, letters, values"


def plain_layouts(region: Region) -> Iterator[Layout]:
    """The layouts of all plain sequences, in order."""
    task = region.task
    for choices in region.operands.values():
        for operands in choices:
            for assignments in _fewest_assignments(task, operands):
                yield Layout(assignments, *operands, default_layout(task, len(assignments)))


def smallest_wrong(subject: Subject, region: Region) -> Problem | None:
    """The smallest sequence that a model gets wrong, None where all plain ones of the region are right."""
    wrong = (first_wrong(subject, region, layout) for layout in plain_layouts(region))
    return next((problem for problem in wrong if problem is not None), None)


def first_wrong(subject: Subject, region: Region, layout: Layout) -> Problem | None:
    """The wrong sequence of a layout with the smallest operand values of a region; None where all are right."""
    right = answered(subject, layout.sequences(subject.task, region.pairs)).correct
    if right.all():
        return None
    left, right = region.pairs[right.argmin()].tolist()
    return layout.problem(left, right).normal(subject.task)


def simplified(subject: Subject, problem: Problem) -> Problem:
    """A wrong sequence with fewer distractors, and the default PADs, as far as it stays wrong."""
    for simpler in _simpler(subject.task, problem):
        if not answered(subject, sequences_from_problems(subject.task, [simpler])).correct[0]:
            return simplified(subject, simpler)
    return problem


def _fewest_assignments(task: TaskConfig, operands: Operands) -> Iterable[tuple[tuple[str, int | Mark], ...]]:
    needed = [(letter, mark) for letter, mark in zip(operands, (Mark.LEFT, Mark.RIGHT), strict=True) if letter]
    if needed:
        return permutations(needed)
    return (((letter, value),) for letter in task.variables for value in range(task.modulus))


def _simpler(task: TaskConfig, problem: Problem) -> Iterator[Problem]:
    """The default PADs, then one distractor less: with the default PADs, or with two PADs in its place."""
    if problem.gaps is not None:
        yield replace(problem, gaps=None)
    if len(problem.assignments) == 1:
        return
    gaps = problem.layout(task)
    for place, (name, _) in enumerate(problem.assignments):
        if name not in (problem.left, problem.right):
            rest = problem.assignments[:place] + problem.assignments[place + 1 :]
            merged = (*gaps[:place], gaps[place] + 2 + gaps[place + 1], *gaps[place + 2 :])
            yield replace(problem, assignments=rest, gaps=None)
            yield replace(problem, assignments=rest, gaps=merged).normal(task)
