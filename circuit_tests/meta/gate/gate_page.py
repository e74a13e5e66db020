"""The parts of `docs/gate.md` that are made by code: invariants, power against the baseline, planted faults.

From the repository's root, `python -m circuit_tests.meta.gate.gate_page` writes them anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aa_core.circuits.state import State
from aa_core.gate.baseline import load_baseline
from aa_core.gate.comparison import SHARES, Change, compare_runs
from aa_core.gate.config import GateConfig
from aa_core.gate.quantities import Family
from aa_core.gate.registry import INVARIANTS
from aa_core.gate.shares import share_test
from aa_core.gate.simulation import limits, simulate
from aa_core.gate.updates import SHORT_RUN
from aa_core.statistics import Verdict
from aa_core.sweeps.record import RunRecord
from aa_core.training.codehash import PACKAGE
from circuit_tests.meta.gate.gate_faults import FAULTS
from circuit_tests.meta.gate.gate_records import with_claim

PAGE = PACKAGE.parent / "docs/gate.md"
BASELINE = PACKAGE.parent / "docs/gate/baseline.json"
COMPARISONS = 20


@dataclass(frozen=True)
class Damage:
    """What may go wrong with a run.

    Attributes:
        what: in words.
        quantity: what shows it.
        done: a run after it.
    """

    what: str
    quantity: str
    done: Callable[[RunRecord], RunRecord]


def _accuracy(record: RunRecord, name: str, share: float) -> RunRecord:
    n = record.accuracies[name][1]
    return dataclasses.replace(record, accuracies={**record.accuracies, name: (round(share * n), n)})


def _slower(record: RunRecord) -> RunRecord:
    return dataclasses.replace(record, phases={name: step and 2 * step for name, step in record.phases.items()})


DAMAGES = (
    Damage(
        "a run only memorises",
        "run/composes",
        lambda run: dataclasses.replace(run, state=State.MEMORISING),
    ),
    Damage("a run is not refined", "run/refined", lambda run: dataclasses.replace(run, state=State.COMPOSES)),
    Damage(
        "`qk-identity/z` fails",
        "holds/qk-identity/z",
        lambda run: with_claim(run, "qk-identity/z", verdict=Verdict.FAILS),
    ),
    Damage(
        "`qk-identity/z` is skipped",
        "holds/qk-identity/z",
        lambda run: with_claim(run, "qk-identity/z", verdict=Verdict.SKIPPED, value=None),
    ),
    Damage(
        "0.86 of the held-out pairs are right",
        "accuracy/0-var/held-out",
        lambda run: _accuracy(run, "0-var/held-out", 0.86),
    ),
    Damage("every phase takes twice as long", "learned/full-prefix/0-var", _slower),
)


def least(
    baseline: Sequence[RunRecord], seeds: Sequence[int], damage: Damage, alpha: float, changes: set[Change]
) -> int | None:
    """The fewest runs of the gate's seeds, as the baseline has them, whose damage is found; None if all are too few."""
    runs = [record for record in baseline if record.config["seed"] in seeds]
    for n in range(1, len(runs) + 1):
        after = [*map(damage.done, runs[:n]), *runs[n:]]
        effects = {effect.quantity.name: effect.change for effect in compare_runs(baseline, after, alpha)}
        if effects[damage.quantity] in changes:
            return n
    return None


def power_section() -> str:
    """A table of damages, and what a simulation of unchanged training said."""
    gate, records = GateConfig(), load_baseline(BASELINE).records
    lines = [
        f"| what broke | shows in | suspect, of {len(gate.seeds)} seeds | alarm |",
        "|---|---|---|---|",
    ]
    for damage in DAMAGES:
        found = [
            least(records, gate.seeds, damage, gate.alpha, changes)
            for changes in ({Change.SUSPECT, Change.REGRESSION}, {Change.REGRESSION})
        ]
        lines.append(f"| {damage.what} | `{damage.quantity}` | {' | '.join(str(n or 'never') for n in found)} |")
    n_new = len(gate.seeds)
    comparisons = simulate(records, n_new, COMPARISONS, gate.alpha)
    alarms = sum(bool(comparison.alarms) for comparison in comparisons)
    return "\n".join(
        [
            *lines,
            "",
            f"`aa gate --simulate`: {alarms} of {COMPARISONS} random choices of {n_new} of the baseline's runs against "
            "the others raised an alarm;",
            *(
                f"{line}{end}"
                for line, end in zip(limits(comparisons, len(records) - n_new, n_new, gate.alpha), ";.", strict=True)
            ),
            "",
            _why_the_outcome_is_alone(records, gate),
        ]
    )


def _why_the_outcome_is_alone(records: Sequence[RunRecord], gate: GateConfig) -> str:
    composes = [float(record.state in (State.COMPOSES, State.REFINED)) for record in records]
    n_new, bad, level = len(gate.seeds), 3, gate.alpha * SHARES[Family.OUTCOME]
    p = share_test(composes, [0.0] * bad + [1.0] * (n_new - bad)).p
    return (
        f"The outcome is a family by itself because {bad} bad seeds of {n_new}, against {composes.count(0.0)} of "
        f"{len(records)}, have a p-value of {p:.2g}: they are an alarm with a share of {level:.2g}, and would be none "
        "among the headline quantities."
    )


def fault_table() -> str:
    """Every planted fault, and the invariant that names what moved."""
    rows = [f"| {name} | `{fault.file}` | `{fault.moved}` |" for name, fault in FAULTS.items()]
    return "\n".join(("| fault | file | invariant |", "|---|---|---|", *rows))


def invariant_table() -> str:
    """Every invariant, and how many checks that makes."""
    once = (SHORT_RUN,)
    rows = [f"| `{item.name}` | {item.statement} |" for item in (*INVARIANTS, *once)]
    checks = 2 * len(INVARIANTS) + len(once)
    return "\n".join(
        (
            f"{checks} checks: {len(INVARIANTS)} in both settings, and `{SHORT_RUN.name}` in the small one.",
            "",
            "| invariant | what holds |",
            "|---|---|",
            *rows,
        )
    )


def current(page: str) -> str:
    """A page with what is made by code between its marks."""
    for name, made in (("invariants", invariant_table()), ("power", power_section()), ("faults", fault_table())):
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = page.split(start)
        page = f"{before}{start}\n{made}\n{end}{rest.split(end)[1]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text()))
