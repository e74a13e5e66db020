"""Problem <-> text <-> tokens."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aa_core.errors import InputError
from aa_core.task.config import TaskConfig
from aa_core.task.problems import (
    Problem,
    default_layout,
    parse_problem,
    problem_from_tokens,
    sequences_from_problems,
)
from aa_core.task.sequences import NO_VARIABLE

PAPER = TaskConfig()
TASKS = [
    PAPER,
    TaskConfig(7, 4, 2, 8),  # smallest prefix: two assignments leave no PAD
    TaskConfig(7, 4, 2, 9),  # odd prefix
    TaskConfig(13, 6, 5, 23),  # longer and odd
    TaskConfig(2, 2, 2, 12),
    TaskConfig(101, 26, 9, 33),  # constants of three digits, all letters
]


@st.composite
def problems(draw: st.DrawFn, task: TaskConfig) -> Problem:
    """Any problem of a task, with None for the default layout as the parsers give it."""
    constants = st.integers(0, task.modulus - 1)
    names = draw(st.lists(st.sampled_from(task.variables), unique=True, max_size=task.max_assignments))
    assignments = tuple((name, draw(constants)) for name in names)
    operands = st.one_of(constants, st.sampled_from(names)) if names else constants
    n_pads = task.prefix_length - 2 * len(names)
    gaps = np.bincount(
        draw(st.lists(st.integers(0, len(names)), min_size=n_pads, max_size=n_pads)), minlength=len(names) + 1
    )
    chosen = draw(st.sampled_from([None, tuple(gaps.tolist())]))
    layout = None if chosen == default_layout(task, len(names)) else chosen
    return Problem(assignments, draw(operands), draw(operands), layout)


tasks_and_problems = st.sampled_from(TASKS).flatmap(lambda task: st.tuples(st.just(task), problems(task)))


@given(tasks_and_problems)
def test_text_and_tokens_give_the_same_problem_back(case: tuple[TaskConfig, Problem]) -> None:
    task, problem = case
    text, tokens = problem.text(task), problem.tokens(task)
    assert parse_problem(task, text) == problem, text
    assert parse_problem(task, problem.text(task, show_pads=True)) == problem, "with every PAD written"
    assert ("_" in text) == (problem.gaps is not None), "PADs are written only where the layout is not the default"
    assert (tokens.dtype, tokens.shape) == (np.int64, (task.n_ctx,))
    assert problem_from_tokens(task, tokens) == problem, text


@given(tasks_and_problems)
def test_answer_and_sources_are_what_the_tokens_say(case: tuple[TaskConfig, Problem]) -> None:
    task, problem = case
    tokens = problem.tokens(task).tolist()
    sources = []
    for position in (task.n_ctx - 3, task.n_ctx - 2):
        is_constant = tokens[position] < task.modulus
        sources.append(position if is_constant else tokens.index(tokens[position]) + 1)
    assert problem.sources(task) == tuple(sources)
    assert problem.operand_values(task) == tuple(tokens[source] for source in sources)
    assert problem.answer(task) == sum(tokens[source] for source in sources) % task.modulus
    names = "".join("-" if index == NO_VARIABLE else task.variables[index] for index in problem.operand_variables(task))
    assert names == "".join(name if isinstance(name, str) else "-" for name in (problem.left, problem.right))


@given(tasks_and_problems, st.data())
def test_white_space_and_the_end_are_free(case: tuple[TaskConfig, Problem], data: st.DataObject) -> None:
    task, problem = case
    symbols = re.findall(r"\d+|\S", problem.text(task).removesuffix("=?"))
    symbols += data.draw(st.sampled_from([[], ["="], ["?"], ["=", "?"]]))
    spaces = data.draw(
        st.lists(st.sampled_from(["", " ", "\t", "\n "]), min_size=len(symbols) + 1, max_size=len(symbols) + 1)
    )
    text = spaces[0] + "".join(symbol + space for symbol, space in zip(symbols, spaces[1:], strict=True))
    assert parse_problem(task, text) == problem, repr(text)


@given(st.sampled_from(TASKS), st.data())
def test_several_problems_become_sequences(task: TaskConfig, data: st.DataObject) -> None:
    several = data.draw(st.lists(problems(task), max_size=4))
    sequences = sequences_from_problems(task, several)
    fields = (sequences.tokens, sequences.answers, sequences.values, sequences.variables, sequences.sources)
    assert [field.shape[1:] for field in fields] == [(task.n_ctx,), (), (2,), (2,), (2,)]
    assert all(len(field) == len(several) and field.dtype == np.int64 for field in fields)
    for row, problem in enumerate(several):
        assert sequences.tokens[row].tolist() == problem.tokens(task).tolist()
        assert sequences.answers[row] == problem.answer(task)
        assert tuple(sequences.values[row]) == problem.operand_values(task)
        assert tuple(sequences.variables[row]) == problem.operand_variables(task)
        assert tuple(sequences.sources[row]) == problem.sources(task)


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_default_layout_is_even(task: TaskConfig) -> None:
    for n in range(task.max_assignments + 1):
        layout = default_layout(task, n)
        assert len(layout) == n + 1
        assert sum(layout) == task.prefix_length - 2 * n, "the PADs fill the prefix"
        assert max(layout) - min(layout) <= 1, f"{layout} is as even as possible"
        assert list(layout) == sorted(layout, reverse=True), f"the first gaps of {layout} get the remainder"


def test_example() -> None:
    problem = parse_problem(PAPER, "c=17, b=42, b+19=?")
    assert problem == Problem((("c", 17), ("b", 42)), "b", 19)
    assert problem.tokens(PAPER).tolist() == [61, 61, 61, 64, 17, 61, 61, 61, 63, 42, 61, 61, 59, 63, 19, 60]
    assert problem.answer(PAPER) == 2
    assert problem.sources(PAPER) == (9, 14)
    assert problem.text(PAPER) == "c=17, b=42, b+19=?"
    assert problem.text(PAPER, show_pads=True) == "_ _ _ c=17, _ _ _ b=42, _ _ b+19=?"
    moved = parse_problem(PAPER, "_ c=17, _ _ _ _ b=42, _ _ _ b+19=?")
    assert moved.gaps == (1, 4, 3)
    assert moved.tokens(PAPER).tolist() == [61, 64, 17, 61, 61, 61, 61, 63, 42, 61, 61, 61, 59, 63, 19, 60]
    assert moved.text(PAPER) == "_ c=17, _ _ _ _ b=42, _ _ _ b+19=?"


@pytest.mark.parametrize(
    ("text", "answer", "sources"),
    [
        ("3+58", 2, (13, 14)),  # no assignment
        ("b=40, b+b", 21, (6, 6)),  # one variable twice; 5 PADs come first
        ("a=1,b=2,c=3,d=4,e=5,f=6,f+a=", 7, (11, 1)),  # a full prefix
    ],
)
def test_accepted_although_rare(text: str, answer: int, sources: tuple[int, int]) -> None:
    problem = parse_problem(PAPER, text)
    assert (problem.answer(PAPER), problem.sources(PAPER)) == (answer, sources)


HUGE = "9" * 100_000
BAD_TEXT = {
    "empty": ("", "the problem is empty"),
    "blank": (" \n\t", "the problem is empty"),
    "only a PAD": ("_", "cannot read the sum ''"),
    "unknown variable in an assignment": ("m=1, a=2, a+1", "unknown variable 'm'"),
    "unknown variable in the sum": ("a=1, m+1", "unknown variable 'm'"),
    "capital letter": ("A=1, A+1", "unknown variable 'A'"),
    "accented letter": ("a=1, é+1", "unknown variable 'é'"),
    "long name": ("aa=1, a+1", "cannot read the variable 'aa'"),
    "assigned twice": ("a=1, b=2, a=1, b+1", "variable 'a' is assigned twice"),
    "too many assignments": ("a=1,b=1,c=1,d=1,e=1,f=1,g=1,a+1", "7 assignments, expected at most 6"),
    "constant too large in an assignment": ("a=59, a+1", "cannot read the constant '59', expected 0 to 58"),
    "constant too large in the sum": ("a=1, a+59", "cannot read the constant '59', expected 0 to 58"),
    "negative": ("a=-1, a+1", "cannot read the constant '-1'"),
    "negative in the sum": ("a=1, a+-1", "cannot read the constant '-1'"),
    "leading zero": ("a=01, a+1", "cannot read the constant '01'"),
    "fraction": ("a=1.0, a+1", "cannot read the constant '1.0'"),
    "superscript digit": ("a=\u00b2, a+1", "cannot read the constant"),
    "arabic digit": ("a=1, a+\u0663", "cannot read the constant"),
    "full-width digit": ("a=\uff13, a+1", "cannot read the constant"),
    "no value": ("a=, a+1", "cannot read the constant ''"),
    "no name": ("=1, a+1", "cannot read the variable ''"),
    "two values": ("a=1=2, a+1", "cannot read the constant '1=2'"),
    "number cut in two": ("a=1 7, a+1", "cannot read the constant '1 7'"),
    "not assigned": ("a=1, b+1", "variable 'b' has no value: add an assignment such as b=0"),
    "nothing assigned": ("a+b", "variable 'a' has no value"),
    "no plus": ("a=1, a", "cannot read the sum 'a', expected two operands with one '\\+'"),
    "no sum": ("a=1", "cannot read the sum 'a=1'"),
    "two plus": ("a=1, a+a+1", "cannot read the sum 'a\\+a\\+1', expected two operands with one '\\+'"),
    "minus": ("a=1, a-1", "cannot read the sum 'a-1'"),
    "operand missing": ("a=1, a+=?", "cannot read the constant ''"),
    "answer given": ("a=1, a+1=2", "cannot read the constant '1=2'"),
    "two question marks": ("a=1, a+1=??", "cannot read the constant"),
    "comma missing": ("a=1 b=2 a+b", "cannot read the variable 'a=1 b=2 a', .* a comma ends every assignment"),
    "comma twice": ("a=1,, a+1", "cannot read the assignment ''"),
    "comma last": ("a=1, a+1=?,", "cannot read the variable 'a\\+1'"),
    "PAD after the value": ("a=1 _, a+1", "cannot read the constant '1 _'"),
    "PAD in the sum": ("a=1, a + _ 1", "cannot read the constant '_ 1'"),
    "PAD missing": ("_ _ a=1, _ a+1", "3 PADs \\(_\\) in 2 gaps, expected 10 in 2, or none at all"),
    "PAD too many": ("_ a=1,b=2,c=3,d=4,e=5,f=6,f+a", "1 PADs \\(_\\) in 7 gaps, expected 0 in 7"),
    "huge constant": (f"a=1, a+{HUGE}", "cannot read the constant '9999"),
    "huge name": (f"{'a' * 100_000}=1, a+1", "cannot read the variable 'aaaa"),
    "huge sum": ("+1" * 100_000, "cannot read the sum"),
    "huge list": ("a=1, " * 10_000 + "a+1", "10000 assignments, expected at most 6"),
    "huge gap": ("_" * 100_000 + "1+1", "100000 PADs"),
}


@pytest.mark.parametrize(("text", "message"), BAD_TEXT.values(), ids=BAD_TEXT.keys())
def test_bad_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_problem(PAPER, text)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 200, "long input is not echoed"


A = ("a", 1)
BAD_PROBLEMS = {
    "constant too large": (Problem((("a", 59),), 1, 1), "constant 59 is out of range, expected 0 to 58"),
    "constant negative": (Problem((A,), -1, 1), "constant -1 is out of range"),
    "unknown variable": (Problem((("z", 1),), 1, 1), "unknown variable 'z'"),
    "unknown operand": (Problem((A,), 1, "z"), "unknown variable 'z'"),
    "assigned twice": (Problem((A, A), 1, 1), "variable 'a' is assigned twice"),
    "not assigned": (Problem((A,), 1, "b"), "variable 'b' has no value"),
    "gap missing": (Problem((A,), 1, 1, (10,)), "10 PADs \\(_\\) in 1 gaps, expected 10 in 2"),
    "no gaps": (Problem((A,), 1, 1, ()), "0 PADs \\(_\\) in 0 gaps, expected 10 in 2"),
    "gap negative": (Problem((A,), 1, 1, (11, -1)), "10 PADs"),
    "gaps too short": (Problem((A,), 1, 1, (5, 4)), "9 PADs \\(_\\) in 2 gaps, expected 10 in 2"),
}


@pytest.mark.parametrize(("problem", "message"), BAD_PROBLEMS.values(), ids=BAD_PROBLEMS.keys())
def test_bad_problems_are_refused_by_every_method(problem: Problem, message: str) -> None:
    methods = ("check", "text", "tokens", "answer", "sources", "operand_values", "operand_variables")
    for method in methods:
        with pytest.raises(InputError, match=message):
            getattr(problem, method)(PAPER)
    with pytest.raises(InputError, match=message):
        sequences_from_problems(PAPER, [problem])


GOOD_ROW: tuple[int, ...] = (61, 61, 61, 64, 17, 61, 61, 61, 63, 42, 61, 61, 59, 63, 19, 60)


def changed(*changes: tuple[int, int]) -> list[int]:
    row = list(GOOD_ROW)
    for position, token in changes:
        row[position] = token
    return row


BAD_TOKENS = {
    "too short": (list(GOOD_ROW[:-1]), "of shape \\(15,\\), expected integers of shape \\(16,\\)"),
    "a batch": ([list(GOOD_ROW)], "of shape \\(1, 16\\)"),
    "not integers": ([float(token) for token in GOOD_ROW], "tokens are float64"),
    "token too large": (changed((2, 74)), "token 74 at position 2 is out of range, expected 0 to 73"),
    "token negative": (changed((2, -1)), "token -1 at position 2 is out of range"),
    "constant alone": (changed((2, 5)), "the prefix has `5 c`"),
    "variable alone": (changed((4, 61)), "the prefix has `c _`"),
    "variable at the end": (changed((11, 62)), "the prefix has `a None`"),
    "plus in the prefix": (changed((0, 59)), "the prefix has `\\+ _`"),
    "equals in an assignment": (changed((4, 60)), "the prefix has `c =`"),
    "assigned twice": (changed((3, 63)), "variable 'b' is assigned twice"),
    "not assigned": (changed((13, 62)), "variable 'a' has no value"),
    "no plus": (changed((12, 61)), "end with `_ b 19 =`"),
    "no equals": (changed((15, 59)), "end with `\\+ b 19 \\+`"),
    "PAD for an operand": (changed((13, 61)), "end with `\\+ _ 19 =`"),
    "equals for an operand": (changed((14, 60)), "end with `\\+ b = =`"),
}


@pytest.mark.parametrize(("tokens", "message"), BAD_TOKENS.values(), ids=BAD_TOKENS.keys())
def test_bad_tokens_are_refused(tokens: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        problem_from_tokens(PAPER, tokens)
    assert len(str(caught.value).splitlines()) == 1


def attempted(read: Callable[[], Problem]) -> Problem | None:
    """The problem, or None for an error of one line; any other error passes through."""
    try:
        return read()
    except InputError as error:
        message = str(error)
    assert len(message.splitlines()) == 1, message
    return None


@given(st.one_of(st.text(max_size=40), st.text("ab1=+,_ ?", max_size=20)))
@example("a=1,a+1")
def test_any_text_is_a_problem_or_an_error_of_one_line(text: str) -> None:
    problem = attempted(lambda: parse_problem(PAPER, text))
    assert problem is None or parse_problem(PAPER, problem.text(PAPER)) == problem, repr(text)


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(-1, 74)), max_size=3))
@example([(4, 18)])
def test_any_tokens_are_a_problem_or_an_error_of_one_line(changes: list[tuple[int, int]]) -> None:
    row = changed(*changes)
    problem = attempted(lambda: problem_from_tokens(PAPER, row))
    assert problem is None or problem.tokens(PAPER).tolist() == row, "tokens that are read are given back"
