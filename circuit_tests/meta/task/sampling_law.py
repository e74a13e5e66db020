"""Slow, independent readings of sequences, and exact laws that draws are compared with.

Laws are tested with chi-square on fixed seeds. A correct sampler would fail a test on a fraction `ALPHA` of the seeds,
and the seeds here are known to pass, so a failure means that the draws changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations, permutations, product
from typing import TypeVar

import numpy as np
from scipy import stats

from aa_core.task.config import TaskConfig
from aa_core.task.problems import problem_from_tokens
from aa_core.task.sampling import KINDS, Kind
from aa_core.task.sequences import NO_VARIABLE, Sequences
from aa_core.task.split import Split, SplitConfig

ALPHA = 1e-6

SPLITS = {
    "paper": Split(TaskConfig(), SplitConfig()),
    "small": Split(TaskConfig(7, 4, 2, 11), SplitConfig(never_left="d", never_right="a")),
    "long": Split(TaskConfig(13, 6, 5, 23), SplitConfig(never_left="ef", never_right="ab", two_variable_frequency=2.0)),
    # So small that all of its sequences can be listed with their probabilities.
    "tiny": Split(
        TaskConfig(2, 3, 2, 9),
        SplitConfig(train_fraction=0.75, never_left="c", never_right="a", two_variable_frequency=0.5, seed=1),
    ),
}

Outcome = TypeVar("Outcome", bound=Hashable)


def assert_law(outcomes: Iterable[Outcome], law: Mapping[Outcome, float], what: str) -> None:
    """Chi-square of the outcomes against their exact probabilities, which must cover everything that occurs."""
    counts = Counter(outcomes)
    assert not counts.keys() - law.keys(), f"{what}: {list(counts.keys() - law.keys())[:3]} must never occur"
    assert abs(sum(law.values()) - 1) < 1e-9, f"{what}: the probabilities of the test itself do not add up"
    n = counts.total()
    assert n * min(law.values()) > 5, f"{what}: {n} draws are too few for chi-square"
    if len(law) == 1:
        return
    p = stats.chisquare([counts[outcome] for outcome in law], [n * share for share in law.values()]).pvalue
    assert p > ALPHA, f"{what}: p = {p:.2g} with {n} draws, such as {counts.most_common(3)}"


def uniform(outcomes: Iterable[Outcome]) -> dict[Outcome, float]:
    distinct = list(outcomes)
    return {outcome: 1 / len(distinct) for outcome in distinct}


def of_kind(sequences: Sequences, kind: Kind) -> Sequences:
    return sequences[np.array(kind_codes(sequences)) == KINDS.index(kind)]


def kind_codes(sequences: Sequences) -> list[int]:
    """Index into `KINDS` of each sequence."""
    return ((sequences.variables != NO_VARIABLE) @ [1, 2]).tolist()


def fields(sequences: Sequences) -> list[list[int]]:
    """Everything in the sequences, for comparison."""
    arrays = (sequences.tokens, sequences.answers, sequences.values, sequences.variables, sequences.sources)
    return [array.tolist() for array in arrays]


def assignments(split: Split, sequences: Sequences) -> list[list[tuple[int, int, int]]]:
    """Position, variable and constant of each sequence's assignments in order, read from the tokens."""
    tokens, first = sequences.tokens, split.task.modulus + 3
    rows, at = np.nonzero(tokens[:, : split.task.n_ctx - 4] >= first)
    found: list[list[tuple[int, int, int]]] = [[] for _ in tokens]
    columns = (rows, at, tokens[rows, at] - first, tokens[rows, at + 1])
    for row, position, variable, constant in zip(*(column.tolist() for column in columns), strict=True):
        found[row].append((position, variable, constant))
    return found


def assert_valid(split: Split, sequences: Sequences) -> None:
    """Every token row is a problem, and what comes with it is what the tokens say."""
    for row, tokens in enumerate(sequences.tokens.tolist()):
        problem = problem_from_tokens(split.task, tokens)
        assert len(problem.assignments) >= 1, problem
        variables, sources, values, answer = _slow_reading(split.task, tokens)
        assert variables[0] == NO_VARIABLE or variables[0] != variables[1], f"{problem} has one letter twice"
        assert sequences.variables[row].tolist() == variables, problem
        assert sequences.sources[row].tolist() == sources, problem
        assert sequences.values[row].tolist() == values, problem
        assert sequences.answers[row] == answer, problem


def _slow_reading(task: TaskConfig, tokens: list[int]) -> tuple[list[int], list[int], list[int], int]:
    """Operand variables, sources, operand values and answer of one sequence, read symbol by symbol."""
    variables, sources = [], []
    for position in (task.n_ctx - 3, task.n_ctx - 2):
        if tokens[position] < task.modulus:
            variables.append(NO_VARIABLE)
            sources.append(position)
        else:
            variables.append(tokens[position] - task.modulus - 3)
            (assigned_at,) = [p for p in range(task.n_ctx - 4) if tokens[p] == tokens[position]]
            sources.append(assigned_at + 1)
    values = [tokens[source] for source in sources]
    return variables, sources, values, (values[0] + values[1]) % task.modulus


def sequence_law(
    task: TaskConfig, pairs: Sequence[tuple[int, ...]], operands: Mapping[tuple[int, int], float]
) -> dict[tuple[int, ...], float]:
    """Probability of every token sequence, by listing all that can be drawn.

    Args:
        task: sizes.
        pairs: operand values, equally likely.
        operands: probability of each choice of operand letters.
    """
    law: dict[tuple[int, ...], float] = {}
    cases = product(operands.items(), pairs, range(1, task.max_assignments + 1))
    for (letters, share), pair, drawn in cases:
        needed = [(letter, value) for letter, value in zip(letters, pair, strict=True) if letter != NO_VARIABLE]
        n = max(drawn, len(needed))
        last = [task.modulus + 3 + a if a != NO_VARIABLE else v for a, v in zip(letters, pair, strict=True)]
        others = sorted(set(range(task.n_variables)) - {letter for letter, _ in needed})
        endings = [
            (order, picks)
            for names in combinations(others, n - len(needed))
            for values in product(range(task.modulus), repeat=len(names))
            for order in permutations([*needed, *zip(names, values, strict=True)])
            for picks in product(range(n + 1), repeat=task.prefix_length - 2 * n)  # the gap that each PAD picks
        ]
        for order, picks in endings:
            tokens: list[int] = []
            for gap in range(n + 1):
                tokens += [task.pad_token] * picks.count(gap)
                tokens += [task.modulus + 3 + order[gap][0], order[gap][1]] if gap < n else []
            sequence = (*tokens, task.plus_token, *last, task.equals_token)
            law[sequence] = law.get(sequence, 0) + share / len(pairs) / task.max_assignments / len(endings)
    return law
