"""The rank test and the rule of the gate: exact, quiet on equal code, and loud on what is planted."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from aa_core.circuits.state import State
from aa_core.claims.registry import CLAIMS
from aa_core.errors import InputError
from aa_core.gate.comparison import Change, Effect, compare, compare_runs, is_enough, is_relevant
from aa_core.gate.config import GateConfig
from aa_core.gate.quantities import Family, Kind, Quantity
from aa_core.gate.ranks import PValue, adjusted, can_be_significant, rank_test
from aa_core.gate.shares import share_test
from aa_core.gate.simulation import simulate
from aa_core.statistics import Verdict, at_least, at_most
from aa_core.sweeps.record import JudgedClaim, RunRecord
from circuit_tests.meta.gate.gate_records import made_up_records, with_claim

ALPHA = GateConfig().alpha
BASELINE = made_up_records(range(16))
NEW = range(100, 106)
CLAIM = next(claim for claim in CLAIMS if claim.criterion.threshold.comparison == ">=")
LOW_CLAIM = next(claim for claim in CLAIMS if claim.criterion.threshold.comparison == "<=")


# The rank test


@pytest.mark.parametrize("n_values", [2, 3, 5, 1000])
@pytest.mark.parametrize("sizes", [(2, 2), (5, 3), (3, 6), (7, 4)])
def test_p_values_are_those_of_every_way_to_deal_the_values(sizes: tuple[int, int], n_values: int):
    rng = np.random.default_rng(n_values)
    for _ in range(5):
        a, b = (rng.integers(0, n_values, size).astype(float) for size in sizes)
        ranks = stats.rankdata([*a, *b])
        sums = np.array([ranks[list(chosen)].sum() for chosen in itertools.combinations(range(len(ranks)), len(b))])
        distances = np.abs(sums - ranks.mean() * len(b))
        observed = abs(ranks[len(a) :].sum() - ranks.mean() * len(b))
        found = rank_test(a, b)
        assert found.p == pytest.approx((distances >= observed - 1e-9).mean()), f"{a} against {b}"
        assert found.least == pytest.approx((distances >= distances.max() - 1e-9).mean()), f"{a} against {b}"


def test_without_ties_it_is_the_exact_mann_whitney_test():
    rng = np.random.default_rng(0)
    for shift in (0, 0.5, 2, 9):
        a, b = rng.standard_normal(16), rng.standard_normal(8) + shift
        assert rank_test(a, b).p == pytest.approx(stats.mannwhitneyu(a, b, method="exact").pvalue)


def test_a_p_value_is_never_zero_and_symmetric():
    assert rank_test(np.zeros(16), np.ones(8)).p == pytest.approx(1 / math.comb(24, 8))
    assert rank_test(np.arange(16.0), np.arange(20.0, 28)).p == pytest.approx(2 / math.comb(24, 8))
    assert rank_test(np.full(16, np.inf), np.full(8, np.inf)).p == 1, "never learned before, never learned now"
    a, b = np.array([1.0, 2, 2, np.inf]), np.array([0.0, 2, -np.inf])
    assert rank_test(a, b) == rank_test(-a, -b)


@pytest.mark.parametrize("bad", [([], [1.0]), ([1.0], []), ([1.0, math.nan], [1.0])])
def test_samples_that_cannot_be_ranked_are_refused(bad: tuple[list[float], list[float]]):
    with pytest.raises(ValueError, match="two samples without nan"):
        rank_test(*map(np.array, bad))


def test_p_values_are_corrected_by_holm_for_what_could_be_significant():
    tests = [PValue(p, 1e-6) for p in (0.001, 0.02, 0.0004, 1.0)]
    assert adjusted(tests, 0.01) == pytest.approx([0.003, 0.04, 0.0016, 1.0])
    constant = [PValue(1.0, 1.0)] * 50
    assert adjusted([*tests, *constant], 0.01)[:4] == pytest.approx([0.003, 0.04, 0.0016, 1.0]), (
        "constants cost nothing"
    )
    coarse = [PValue(0.004, 0.004)] * 3
    assert can_be_significant(coarse, 0.01) == [False] * 3, (
        "three that can only reach 0.004 cannot be significant together"
    )
    assert can_be_significant(coarse[:2], 0.01) == [True] * 2
    assert adjusted([], 0.01) == []


def test_the_correction_keeps_the_error_rate_on_dependent_and_discrete_quantities():
    rng, alpha, n_false, n = np.random.default_rng(0), 0.2, 0, 200
    for _ in range(n):
        common = rng.standard_normal(24)
        rows = [np.round(common * rng.random() + rng.standard_normal(24), digits) for digits in (0, 0, 1, 3, 3, 3)]
        n_false += min(adjusted([rank_test(row[:16], row[16:]) for row in rows], alpha)) <= alpha
    assert 0 < n_false <= stats.binom.ppf(0.999, n, alpha), f"{n_false} false rejections in {n} at alpha {alpha}"


def below(table: tuple[int, int], other: tuple[int, int], sizes: tuple[int, int]) -> bool:
    """Whether a table of ones in two samples is as far from equal as another, by Fisher's exact test."""
    p, q = (stats.hypergeom.cdf(b, sum(sizes), a + b, sizes[1]) for a, b in (table, other))
    return bool(p <= q * (1 + 1e-9))


@pytest.mark.parametrize(
    ("ones", "expected"), [((16, 5), 0.0146), ((16, 4), 0.0025), ((16, 6), 0.0564), ((15, 4), 0.0146)]
)
def test_a_share_of_seeds_has_the_p_value_of_every_share_there_could_be(ones: tuple[int, int], expected: float):
    sizes = 16, 8
    values = [[1.0] * n + [0.0] * (size - n) for n, size in zip(ones, sizes, strict=True)]
    tables = itertools.product(range(17), range(9))
    region = [table for table in tables if below(table, ones, sizes)]
    shares = np.linspace(0.001, 0.999, 999)
    each = [stats.binom.pmf(a, 16, shares) * stats.binom.pmf(b, 8, shares) for a, b in region]
    brute = float(np.sum(each, axis=0).max())
    assert share_test(*values).p == pytest.approx(brute, rel=0.01)
    assert brute == pytest.approx(expected, abs=1e-4)


def test_equal_shares_and_better_ones_are_tested_in_their_own_direction():
    assert share_test([1.0] * 16, [1.0] * 8).p == 1
    assert share_test([1.0, 0.0] * 8, [1.0, 0.0] * 4).p == 1
    assert share_test([0.0] * 16, [1.0] * 8).p == share_test([1.0] * 16, [0.0] * 8).p < 1e-6


def test_the_least_numbers_of_seeds_follow_from_the_test():
    assert [n for n in range(2, 12) if is_enough(16, n, ALPHA)] == list(range(6, 12))
    assert [n for n in range(2, 17) if is_enough(n, 6, ALPHA)] == list(range(14, 17))
    assert is_enough(16, 5, 2 * ALPHA), "a larger error rate needs fewer seeds"


# The rule


@pytest.mark.parametrize(
    ("quantity", "before", "after", "relevant"),
    [
        (Quantity("a", Kind.ACCURACY, Family.HEADLINE), [0.99], [0.981], False),
        (Quantity("a", Kind.ACCURACY, Family.HEADLINE), [0.99], [0.979], True),
        (Quantity("s", Kind.STEPS, Family.HEADLINE), [1000], [1140], False),
        (Quantity("s", Kind.STEPS, Family.HEADLINE), [1000], [1160], True),
        (Quantity("s", Kind.STEPS, Family.HEADLINE), [1000], [math.inf], True),
        (Quantity("s", Kind.STEPS, Family.HEADLINE), [math.inf], [math.inf], False),
        (Quantity("h", Kind.SHARE, Family.CLAIMS), [1, 1, 1, 1, 1], [1, 1, 1, 1, 0], False),
        (Quantity("h", Kind.SHARE, Family.CLAIMS), [1, 1, 1, 1], [1, 1, 1, 0], True),
        (Quantity("v", Kind.MEASURED, Family.CLAIMS, at_least(2)), [6], [5.1], False),
        (Quantity("v", Kind.MEASURED, Family.CLAIMS, at_least(2)), [6], [4.9], True),
        (Quantity("v", Kind.MEASURED, Family.CLAIMS, at_most(0.5)), [0.1], [0.15], False),
        (Quantity("v", Kind.MEASURED, Family.CLAIMS, at_most(0.5)), [0.1], [0.25], True),
        (Quantity("v", Kind.MEASURED, Family.CLAIMS, at_least(2)), [6], [-math.inf], True),
    ],
)
def test_the_size_that_matters(quantity: Quantity, before: list[float], after: list[float], relevant: bool):
    assert is_relevant(quantity, before, after) == relevant


def effects_of(change: Callable[[RunRecord], RunRecord]) -> dict[str, Effect]:
    effects = compare_runs(BASELINE, made_up_records(NEW, change), ALPHA)
    return {effect.quantity.name: effect for effect in effects}


def alarms_of(change: Callable[[RunRecord], RunRecord]) -> set[str]:
    return {name for name, effect in effects_of(change).items() if effect.change is Change.REGRESSION}


def test_runs_of_the_same_code_raise_no_alarm_and_could_have():
    effects = effects_of(lambda record: record)
    assert {effect.change for effect in effects.values()} <= {Change.SAME, Change.SUSPECT}
    assert all(
        effect.testable for name, effect in effects.items() if name.startswith(("learned/", "accuracy/", "value/"))
    )


def slower(record: RunRecord) -> RunRecord:
    return dataclasses.replace(record, phases={n: s and int(s * 2.2) for n, s in record.phases.items()})


def never_refined(record: RunRecord) -> RunRecord:
    return dataclasses.replace(
        record, state=State.COMPOSES, phases={**record.phases, "pool/2-var/both-restricted": None}
    )


def less_accurate(record: RunRecord) -> RunRecord:
    worse = {name: (right - 60, n) for name, (right, n) in record.accuracies.items()}
    return dataclasses.replace(record, accuracies={**record.accuracies, "2-var/seen": worse["2-var/seen"]})


def shifted(claim_id: str, by: float) -> Callable[[RunRecord], RunRecord]:
    def change(record: RunRecord) -> RunRecord:
        assert record.claims is not None
        value = record.claims[claim_id].value
        assert value is not None
        return with_claim(record, claim_id, value=value + by)

    return change


PLANTED: dict[str, tuple[Callable[[RunRecord], RunRecord], set[str]]] = {
    "phases later": (slower, {"learned/full-prefix/1L", "learned/pool/0-var/seen"}),
    "a phase never reached": (never_refined, {"learned/pool/2-var/both-restricted", "run/refined"}),
    "an accuracy lower": (less_accurate, {"accuracy/2-var/seen"}),
    "a claim lost": (
        lambda record: with_claim(record, CLAIM.id, verdict=Verdict.FAILS, value=CLAIM.criterion.threshold.bound - 0.1),
        {f"holds/{CLAIM.id}", f"value/{CLAIM.id}"},
    ),
    "a claim skipped": (
        lambda record: with_claim(record, CLAIM.id, verdict=Verdict.SKIPPED, value=None),
        {f"holds/{CLAIM.id}", f"value/{CLAIM.id}"},
    ),
    "a value towards its threshold": (shifted(CLAIM.id, -0.9), {f"value/{CLAIM.id}"}),
    "a value up towards its threshold": (shifted(LOW_CLAIM.id, 0.9), {f"value/{LOW_CLAIM.id}"}),
    "stuck": (
        lambda record: dataclasses.replace(record, state=State.STUCK),
        {"run/composes", "run/refined"},
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_became_worse_is_an_alarm_by_its_name(name: str):
    change, expected = PLANTED[name]
    found = alarms_of(change)
    assert expected <= found, f"missed {expected - found}"
    extra = found - expected
    assert not extra or (name == "phases later" and all(item.startswith("learned/") for item in extra)), extra


def memorising(n: int) -> Callable[[RunRecord], RunRecord]:
    return lambda record: (
        dataclasses.replace(record, state=State.MEMORISING) if record.config["seed"] < NEW[n] else record
    )


@pytest.mark.parametrize(
    ("n", "change"), [(1, Change.SAME), (2, Change.SUSPECT), (3, Change.REGRESSION), (4, Change.REGRESSION)]
)
def test_three_of_eight_seeds_that_only_memorise_are_an_alarm_and_two_are_suspect(n: int, change: Change):
    assert effects_of(memorising(n))["run/composes"].change is change


LOST: dict[str, tuple[Callable[[RunRecord], RunRecord], str]] = {
    "claims null": (lambda record: dataclasses.replace(record, claims=None), "claims"),
    "claims empty": (lambda record: dataclasses.replace(record, claims={}), "claims"),
    "claims skipped": (
        lambda record: dataclasses.replace(
            record, claims={claim.id: JudgedClaim(Verdict.SKIPPED, None) for claim in CLAIMS}
        ),
        "claims",
    ),
    "no accuracies": (lambda record: dataclasses.replace(record, accuracies={}), "accuracy/"),
    "no phases": (lambda record: dataclasses.replace(record, phases={}), "learned/"),
}


@pytest.mark.parametrize("name", LOST)
def test_what_all_new_runs_lack_is_an_alarm_for_each_quantity(name: str):
    change, prefix = LOST[name]
    effects, alarms = effects_of(change), alarms_of(change)
    assert effects.keys() == effects_of(lambda record: record).keys(), "a quantity of the baseline was dropped"
    claims = {f"{part}/{claim.id}" for part in ("holds", "value") for claim in CLAIMS}
    lost = claims | {"run/claims-that-hold"} if prefix == "claims" else {n for n in effects if n.startswith(prefix)}
    assert alarms <= lost, f"{alarms - lost} were not lost"
    held = {n for n in lost if n.startswith("holds/") and sum(effects[n].before) < 12}
    assert lost - held - alarms <= {n for n in lost if n.startswith("value/")}, f"missed {lost - held - alarms}"
    assert len(alarms) > 0.8 * len(lost)


def test_one_new_run_that_lacks_everything_counts_at_the_worst_values_and_is_no_alarm():
    def lacking(record: RunRecord) -> RunRecord:
        if record.config["seed"] != NEW[0]:
            return record
        return dataclasses.replace(record, claims=None, accuracies={}, phases={})

    effects = effects_of(lacking)
    for name in (f"value/{CLAIM.id}", "accuracy/2-var/seen", "learned/full-prefix/1L", "run/claims-that-hold"):
        assert effects[name].after[0] == effects[name].quantity.worst, name
    assert not alarms_of(lacking)


def test_a_claim_that_applies_to_some_runs_raises_no_false_alarm():
    def sometimes(record: RunRecord) -> RunRecord:
        applies = np.random.default_rng(record.config["seed"]).random() < 7 / 16
        return record if applies else with_claim(record, CLAIM.id, verdict=Verdict.SKIPPED, value=None)

    records = made_up_records(range(16), sometimes)
    assert not any(comparison.alarms for comparison in simulate(records, 8, 20, ALPHA))
    effects = compare_runs(records, made_up_records(NEW, sometimes), ALPHA)
    assert {effect.change for effect in effects if CLAIM.id in effect.quantity.name} <= {Change.SAME, Change.SUSPECT}


def test_many_claims_lost_in_every_seed_lower_the_share_that_hold():
    def lost(record: RunRecord) -> RunRecord:
        rng = np.random.default_rng(record.config["seed"])
        for place in rng.choice(len(CLAIMS), 8, replace=False):  # others in each seed
            record = with_claim(record, CLAIMS[place].id, verdict=Verdict.FAILS)
        return record

    assert alarms_of(lost) == {"run/claims-that-hold"}


def test_what_became_better_is_reported_without_an_alarm():
    def better(record: RunRecord) -> RunRecord:
        record = shifted(CLAIM.id, 3)(record)
        return dataclasses.replace(record, phases={n: s and int(s * 0.4) for n, s in record.phases.items()})

    effects = effects_of(better)
    for name in ("learned/full-prefix/1L", f"value/{CLAIM.id}"):
        assert effects[name].change is Change.IMPROVEMENT, name
    assert not alarms_of(better)


def test_what_only_new_runs_have_is_not_compared():
    effects = effects_of(
        lambda record: dataclasses.replace(record, accuracies={**record.accuracies, "x": (1990, 2000)})
    )
    assert "accuracy/x" not in effects


def test_a_small_change_is_no_alarm_however_significant():
    before = {Quantity("a", Kind.ACCURACY, Family.HEADLINE): tuple(0.999 + 1e-6 * place for place in range(16))}
    after = {Quantity("a", Kind.ACCURACY, Family.HEADLINE): tuple(0.998 + 1e-6 * place for place in range(8))}
    [effect] = compare(before, after, ALPHA)
    assert effect.adjusted_p <= 1e-5
    assert effect.change is Change.SAME


def test_a_claim_that_failed_before_has_nothing_to_lose():
    quantity = Quantity("v", Kind.MEASURED, Family.CLAIMS, at_least(2))
    before, after = tuple(1 + 0.01 * i for i in range(16)), tuple(0.1 + 0.01 * i for i in range(8))
    assert compare({quantity: before}, {quantity: after}, ALPHA)[0].change is Change.SAME
    assert compare({quantity: after}, {quantity: before}, ALPHA)[0].change is Change.IMPROVEMENT


def test_what_is_not_certain_is_suspect():
    quantities = [Quantity(f"a{place}", Kind.ACCURACY, Family.HEADLINE) for place in range(200)]
    rng = np.random.default_rng(0)
    before = {quantity: tuple(rng.normal(0.9, 0.02, 16)) for quantity in quantities}
    after = {quantity: tuple(rng.normal(0.9, 0.02, 8)) for quantity in quantities}
    after[quantities[0]] = tuple(rng.normal(0.86, 0.02, 8))
    effects = compare(before, after, ALPHA)
    assert effects[0].change is Change.SUSPECT, f"p {effects[0].test.p:.2g}, corrected {effects[0].adjusted_p:.2g}"


# False alarms


@pytest.mark.parametrize("n_new", [6, 8])
def test_some_runs_against_others_of_the_same_code_raise_no_alarm(n_new: int):
    comparisons = simulate(BASELINE, n_new, 20, ALPHA)
    assert [comparison.alarms for comparison in comparisons] == [[]] * 20
    assert len({comparison.new for comparison in comparisons}) == 20, "the same runs twice"
    assert all(len(comparison.new) == n_new for comparison in comparisons)


def test_six_of_sixteen_can_raise_an_alarm_on_headline_quantities():
    worse = [*made_up_records(range(10)), *made_up_records(range(10, 16), slower)]
    effects = compare_runs(worse[:10], worse[10:], ALPHA)
    assert {effect.quantity.name for effect in effects if effect.change is Change.REGRESSION} > {
        "learned/full-prefix/1L"
    }


def test_simulated_comparisons_would_show_an_alarm():
    mixed = [*made_up_records(range(4)), *made_up_records(range(4, 8), slower)]
    alarms = [comparison.alarms for comparison in simulate([*mixed, *mixed], 8, 10, 1.0)]
    assert any(alarms), "nothing can raise an alarm in a simulation"


@pytest.mark.parametrize("n_new", [1, 15, 16])
def test_too_few_runs_cannot_be_halved(n_new: int):
    with pytest.raises(InputError, match=f"16 runs cannot be split into {n_new} new ones"):
        simulate(BASELINE, n_new, 1, ALPHA)
