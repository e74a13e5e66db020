"""Domains of certificates: every sequence once, and none that does not belong, against enumeration by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from aa_core.certificates.catalogue import DOMAINS, domain_of
from aa_core.certificates.domain import Domain
from aa_core.errors import InputError
from aa_core.task.config import TaskConfig
from aa_core.task.problems import Problem, parse_problem, problem_from_tokens, sequences_from_problems
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.certificates.cases import CONFIG, TASK

SPLIT = Split(TASK, CONFIG.split)
WIDE = TaskConfig(modulus=5, n_variables=5, max_assignments=3, n_ctx=12)
WIDE_SPLIT = Split(WIDE, SplitConfig(never_left="d", never_right="a"))
SEQUENCE = "_ a=3, _ e=1, c=4, a+2=?"
CONSTANTS = range(TASK.modulus)


def gaps(n_assignments: int) -> Iterator[tuple[int, ...]]:
    """Every layout."""
    n_pads = TASK.prefix_length - 2 * n_assignments
    for layout in product(range(n_pads + 1), repeat=n_assignments + 1):
        if sum(layout) == n_pads:
            yield layout


def sums(prefix: str, seen: bool | None) -> Iterator[Problem]:
    for left, right in product(CONSTANTS, repeat=2):
        if seen is None or SPLIT.seen[left, right] == seen:
            yield parse_problem(TASK, f"{prefix}{left}+{right}")


def one_variable() -> Iterator[Problem]:
    for name, value, other, layout in product(TASK.variables, CONSTANTS, CONSTANTS, gaps(1)):
        yield Problem(((name, value),), name, other, layout)
        yield Problem(((name, value),), other, name, layout)


def two_variables() -> Iterator[Problem]:
    letters = permutations(TASK.variables, 2)
    for names, values, layout in product(letters, product(CONSTANTS, repeat=2), gaps(2)):
        first, second = zip(names, values, strict=True)
        yield Problem((first, second), *names, layout)
        yield Problem((second, first), *names, layout)


def distractor_changes() -> Iterator[Problem]:
    problem = parse_problem(WIDE, SEQUENCE)
    for changed in (1, 2):
        for name, value in product(WIDE.variables, range(WIDE.modulus)):
            assignments = list(problem.assignments)
            assignments[changed] = (name, value)
            distinct = len({letter for letter, _ in assignments}) == 3
            if distinct and tuple(assignments) != problem.assignments:
                yield replace(problem, assignments=tuple(assignments))


CASES = {
    "all pairs": (domain_of("0-var", {}, SPLIT), sums("", None)),
    "seen pairs": (domain_of("0-var", {"pairs": "seen"}, SPLIT), sums("", True)),
    "held-out pairs": (domain_of("0-var", {"pairs": "held-out"}, SPLIT), sums("", False)),
    "a prefix": (domain_of("0-var", {"prefix": "c=3, a=0"}, SPLIT), sums("c=3, a=0, ", None)),
    "a prefix with PADs": (domain_of("0-var", {"prefix": "_ b=3, _ _ _"}, SPLIT), sums("_ b=3, _ _ _ ", None)),
    "one variable": (domain_of("1-var-one-assignment", {}, SPLIT), one_variable()),
    "two variables": (domain_of("2-var-two-assignments", {}, SPLIT), two_variables()),
    "distractors": (domain_of("distractor-changes", {"sequence": SEQUENCE}, WIDE_SPLIT), distractor_changes()),
}


@pytest.mark.parametrize("case", CASES)
def test_every_sequence_once_and_no_other(case: str) -> None:
    domain, problems = CASES[case]
    expected = sequences_from_problems(domain.task, list(problems))
    found = domain.sequences(np.arange(domain.size))
    assert len({tuple(row) for row in found.tokens.tolist()}) == domain.size, "a sequence occurs twice"
    order, expected_order = (np.lexsort(part.tokens.T) for part in (found, expected))
    for field in ("tokens", "answers", "values", "variables", "sources"):
        np.testing.assert_array_equal(getattr(found[order], field), getattr(expected[expected_order], field), field)


@pytest.mark.parametrize("case", CASES)
def test_a_sequence_is_a_function_of_its_index_alone(case: str) -> None:
    domain, _ = CASES[case]
    whole = domain.sequences(np.arange(domain.size)).tokens
    some = np.random.default_rng(0).permutation(domain.size)[:9]
    np.testing.assert_array_equal(domain.sequences(some).tokens, whole[some])


@pytest.mark.parametrize("case", CASES)
def test_parameters_define_the_domain(case: str) -> None:
    domain, _ = CASES[case]
    split = SPLIT if domain.task == TASK else WIDE_SPLIT
    again = domain_of(domain.name, domain.parameters, split)
    assert again.parameters == domain.parameters
    indices = np.arange(domain.size)
    np.testing.assert_array_equal(again.sequences(indices).tokens, domain.sequences(indices).tokens)


def test_divisions_of_distractor_changes() -> None:
    domain, _ = CASES["distractors"]
    original = parse_problem(WIDE, SEQUENCE).tokens(WIDE)
    indices = np.arange(domain.size)
    axes = domain.axes(indices)
    for index, tokens in enumerate(domain.sequences(indices).tokens):
        changed = np.flatnonzero(tokens != original)
        kind, place = (axes[name].labels[axes[name].codes[index]] for name in ("change", "distractor at"))
        letter = int(place)
        expected = {"letter": [letter], "value": [letter + 1], "letter and value": [letter, letter + 1]}
        assert changed.tolist() == expected[kind], problem_from_tokens(WIDE, tokens)


def test_sizes_in_the_paper_task() -> None:
    split = Split(TaskConfig(), SplitConfig())

    def size(name: str, **parameters: str) -> int:
        return domain_of(name, parameters, split).size

    assert size("0-var") == 59**2
    assert size("0-var", pairs="held-out") == 1045
    assert size("1-var-one-assignment") == 12 * 11 * 2 * 59**2 == 918_984
    assert size("2-var-two-assignments") == 45 * 2 * 132 * 59**2 == 41_354_280
    assert size("distractor-changes", sequence="c=17, b=42, b+19=?") == 11 * 59 - 1


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("3-var", {}, "expected one of 0-var, 1-var-one-assignment"),
        ("0-var", {"pairs": "some"}, "expected one of all, seen, held-out"),
        ("0-var", {"prefix": "a=9"}, r"prefix 'a=9': .* expected 0 to 4"),
        ("0-var", {"sequence": "1+2"}, "has no sequence"),
        ("1-var-one-assignment", {"prefix": ""}, "has no prefix"),
        ("distractor-changes", {}, "needs a sequence"),
        ("distractor-changes", {"sequence": "a=1, a+b"}, "'b' has no value"),
        ("distractor-changes", {"sequence": "a=1, a+2"}, "no distractor"),
    ],
)
def test_bad_domains_are_refused(name: str, parameters: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        domain_of(name, parameters, SPLIT)
    assert "\n" not in str(refusal.value)


def test_an_empty_choice_of_pairs_is_refused() -> None:
    with pytest.raises(InputError, match="no such pair"):
        domain_of("0-var", {"pairs": "held-out"}, Split(TASK, SplitConfig(1.0, never_left="c", never_right="a")))


def test_cases_cover_the_domains() -> None:
    domains: set[str] = {domain.name for domain, _ in CASES.values()}
    assert domains == set(DOMAINS)
    assert all(isinstance(domain, Domain) for domain, _ in CASES.values())
