"""The domains by name, from what a person or a certificate says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from string import whitespace

import numpy as np

from aa_core.certificates.distractors import DistractorChanges
from aa_core.certificates.domain import Domain
from aa_core.certificates.exposure import Exposure
from aa_core.certificates.one_variable import OneVariable
from aa_core.certificates.two_variables import TwoVariables
from aa_core.certificates.zero_variable import ZeroVariable
from aa_core.errors import InputError
from aa_core.task.problems import PAD_SIGN, parse_problem, sequences_from_problems
from aa_core.task.split import Split

PAIRS = ("all", "seen", "held-out")
_SUM = "0+0=?"  # stands for any sum where only the prefix counts


def domain_of(name: str, parameters: Mapping[str, str], split: Split) -> Domain:
    """The domain with this name and these parameters.

    Args:
        name: one of `DOMAINS`.
        parameters: `prefix` (default: PADs alone) and `pairs` (default: all) of `0-var`; `sequence` of
            `distractor-changes`; none for the others.
        split: the task, and its training pairs.

    Raises:
        InputError: there is no such domain, a parameter is missing, unknown or unreadable, or the domain is empty.
    """
    if name not in DOMAINS:
        raise InputError(f"domain {name!r}: expected one of {', '.join(DOMAINS)}")
    known, make = DOMAINS[name]
    for parameter in parameters:
        if parameter not in known:
            raise InputError(f"the domain {name} has no {parameter}: leave it out")
    domain = make(parameters, split)
    if domain.size == 0:
        raise InputError(f"the domain {name} is empty: {_EMPTY[name]}")
    return domain


def exposure_of(split: Split) -> Exposure:
    """What training showed, as arrays."""
    never = np.zeros((2, split.task.n_variables), dtype=bool)
    for side in (0, 1):
        never[side, split.restricted_variables(side)] = True
    return Exposure(split.seen, never)


def _zero_variable(parameters: Mapping[str, str], split: Split) -> Domain:
    task, pairs = split.task, parameters.get("pairs", "all")
    if pairs not in PAIRS:
        raise InputError(f"pairs {pairs!r}: expected one of {', '.join(PAIRS)}")
    chosen = {
        "all": np.argwhere(np.ones_like(split.seen)),
        "seen": split.seen_pairs,
        "held-out": split.held_out_pairs,
    }[pairs]
    prefix = parameters.get("prefix", "")
    ends_with_pads = not prefix.rpartition(",")[2].strip(PAD_SIGN + whitespace)
    try:
        problem = parse_problem(task, f"{prefix} {_SUM}" if ends_with_pads else f"{prefix}, {_SUM}")
    except InputError as error:
        raise InputError(f"prefix {prefix!r}: {error}") from error
    text = problem.text(task).removesuffix(_SUM).rstrip(f",{whitespace}")
    tokens = tuple(problem.tokens(task)[: task.prefix_length].tolist())
    return ZeroVariable(task, tokens, text, pairs, chosen)


def _one_variable(parameters: Mapping[str, str], split: Split) -> Domain:
    return OneVariable(split.task)


def _two_variables(parameters: Mapping[str, str], split: Split) -> Domain:
    return TwoVariables(split.task)


def _distractor_changes(parameters: Mapping[str, str], split: Split) -> Domain:
    if "sequence" not in parameters:
        raise InputError(f"the domain {DistractorChanges.name} needs a sequence, such as 'c=17, b=42, b+19=?'")
    problem = parse_problem(split.task, parameters["sequence"])
    return DistractorChanges(split.task, sequences_from_problems(split.task, [problem]), problem.text(split.task))


DOMAINS: Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, str], Split], Domain]]] = {
    ZeroVariable.name: (("prefix", "pairs"), _zero_variable),
    OneVariable.name: ((), _one_variable),
    TwoVariables.name: ((), _two_variables),
    DistractorChanges.name: (("sequence",), _distractor_changes),
}
_EMPTY = {
    ZeroVariable.name: "the split has no such pair",
    DistractorChanges.name: "the sequence has no distractor",
}
