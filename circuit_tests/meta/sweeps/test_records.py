"""What a sweep records of a run."""

from __future__ import annotations

import dataclasses

import pytest

from aa_core.checkpoints import load_checkpoint
from aa_core.circuits.accuracy import held_out_zero_variable, pool_accuracy
from aa_core.circuits.state import diagnose
from aa_core.circuits.subject import Subject
from aa_core.claims.registry import CLAIMS
from aa_core.errors import InputError
from aa_core.runs import Run, RunStore
from aa_core.statistics import Verdict
from aa_core.sweeps.record import RECORD, JudgedClaim, check_record, phases, run_record
from aa_core.training.metrics import metrics_for
from circuit_tests.meta.sweeps.sweep_results import logistic, synthetic_sweep
from circuit_tests.meta.tiny import TINY


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return RunStore(metrics_for, root=tmp_path_factory.mktemp("finished")).run(TINY)


def test_record_is_what_the_run_says_and_survives_json(finished: Run) -> None:
    record = run_record(finished, judge=False)
    assert RECORD.validate_json(RECORD.dump_json(record)) == record
    checkpoint = load_checkpoint(finished.final_path)
    subject = Subject(checkpoint.parameters, checkpoint.split)
    for name in ("0-var/seen", "2-var/both-restricted"):
        assert record.accuracy(name) == pool_accuracy(subject, name).value
    exact = held_out_zero_variable(subject)
    assert record.accuracies["exact/0-var/held-out"] == (exact.count, exact.n)
    assert record.accuracy("1-var/seen", "2-var/seen") == pytest.approx(
        (record.accuracy("1-var/seen") + record.accuracy("2-var/seen")) / 2
    )
    assert record.state is diagnose(subject).state
    assert (record.run, record.code, record.threads) == (finished.folder.name, finished.manifest.code, 1)
    assert record.config["split"]["never_left"] == "d"
    assert record.claims is None


def test_judged_record_has_every_claim(finished: Run) -> None:
    record = run_record(finished)
    assert record.claims is not None
    assert list(record.claims) == [claim.id for claim in CLAIMS]
    assert Verdict.FAILS in {claim.verdict for claim in record.claims.values()}, "an untrained model lacks the circuit"
    assert RECORD.validate_json(RECORD.dump_json(record)) == record


def test_phase_is_the_first_step_at_95_percent() -> None:
    accuracies = {100: 0.5, 200: 0.95, 300: 0.9, 400: 1.0}
    rows = [{"step": step, "full-prefix/1L": accuracy} for step, accuracy in accuracies.items()]
    found = phases([{**row, "full-prefix/1R": 0.949} for row in rows])
    assert found["full-prefix/1L"] == 200
    assert found["full-prefix/1R"] is None
    assert found["pool/0-var/seen"] is None, "a metric that was not logged"


def test_a_value_that_is_not_finite_is_none_of_a_record() -> None:
    record = synthetic_sweep(logistic(0.25)).records[0]
    check_record(dataclasses.replace(record, claims={"a/b": JudgedClaim(Verdict.HOLDS, 1.0)}))
    with pytest.raises(InputError, match=r"claims\.a/b: inf"):
        check_record(dataclasses.replace(record, claims={"a/b": JudgedClaim(Verdict.HOLDS, float("inf"))}))
