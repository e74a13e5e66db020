"""Every claim against every control and symmetry: the matrix finds every kind of fault."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from aa_core.checkpoints import save_checkpoint
from aa_core.circuits.dynamics import TrajectorySubject
from aa_core.circuits.subject import Subject
from aa_core.claims.claim import Claim, Criterion, Form
from aa_core.claims.registry import CLAIMS, select_claims
from aa_core.controls import (
    BREAKING_CONTROLS,
    CONTROLS,
    SYMMETRIES,
    TRAJECTORY_CONTROLS,
    Control,
    Symmetry,
    TrainedControl,
    control_matrix,
    matrix_faults,
    write_matrix,
)
from aa_core.controls.matrix import Group
from aa_core.errors import InputError
from aa_core.model.config import ModelConfig
from aa_core.model.parameters import Parameters
from aa_core.statistics import Measurement, at_least, exact
from aa_core.task.config import TaskConfig
from aa_core.training.config import TrainConfig
from circuit_tests.plugin import ModelUnderTest


@pytest.fixture(scope="module")
def run(compiled: Subject) -> TrajectorySubject:
    """Learns to add at step 10 and to bind at step 100."""
    untrained = CONTROLS["random"].apply(compiled, 1)
    adds = CONTROLS["uniform-attention-0"].apply(compiled, 0)
    return TrajectorySubject((0, 10, 100), (untrained, adds, compiled))


def same(subject: Subject, seed: int) -> Parameters:
    return subject.parameters


def scaled(subject: Subject, seed: int) -> Parameters:
    return {**subject.parameters, "embed.W_E": subject.parameters["embed.W_E"] * 3}


def scale(subject: Subject) -> Measurement:
    return exact(-float(subject.parameters["embed.W_E"].abs().max()))


def crashing(subject: Subject) -> Measurement:
    return exact(1 / (float(subject.parameters["embed.W_E"].abs().max()) - 3))


def warning(subject: Subject) -> Measurement:
    weights = subject.parameters["embed.W_E"].numpy()
    return exact(float(weights[weights == 1].mean()))  # of nothing, once scaled


def claim(broken_by: tuple[str, ...] = ("win-permuted",), measure: object = scale, bound: float = -1.5) -> Claim:
    return Claim("a/b", "", "", Form.LITERAL, Criterion("", measure, at_least(bound)), "", broken_by)  # pyright: ignore


def faults(
    compiled: Subject,
    claim: Claim,
    *,
    breaks: bool = True,
    harmless: bool = False,
    symmetry: bool = True,
) -> list[str]:
    """Of one claim on W_E's largest entry, under controls and symmetries that change it or do not."""
    controls = [
        Control("win-permuted", "", scaled if breaks else same),
        Control("variables-permuted", "", scaled if harmless else same, harmless=True),
    ]
    symmetries = [Symmetry("residual-rotated", "", same if symmetry else scaled)]
    return matrix_faults(control_matrix(compiled, [claim], controls, symmetries))


def test_no_faults(compiled: Subject) -> None:
    assert faults(compiled, claim()) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"breaks": False}, r"a/b holds under win-permuted, seed 0 .*, which was built to break it"),
        ({"harmless": True}, r"a/b fails under variables-permuted, .*, which breaks nothing"),
        ({"symmetry": False}, r"a/b fails under residual-rotated, .*, a symmetry, and holds without it"),
        ({"claim": claim(("random",))}, "a/b names no control besides untrained weights"),
        ({"claim": claim(("win-permuted", "gone"))}, "a/b names gone, which is no control"),
        ({"claim": claim(("win-permuted", "qk1-rotated"))}, "a/b was not judged under qk1-rotated, which it names"),
        ({"claim": claim(measure=crashing)}, "a/b crashes on win-permuted, seed 0: ZeroDivisionError"),
        ({"claim": claim(measure=warning)}, "a/b crashes on win-permuted, seed 0: RuntimeWarning"),
        ({"claim": claim(bound=0.5)}, "a/b does not hold on the model itself"),
    ],
)
def test_every_kind_of_fault_is_found(compiled: Subject, options: dict[str, object], expected: str) -> None:
    found = faults(compiled, **{"claim": claim(), **options})  # pyright: ignore
    assert any(re.match(expected, fault) for fault in found), found


@pytest.mark.parametrize(("build", "n_faults"), [(scaled, 1), (same, 0)])
@pytest.mark.parametrize("spares", ["a", "a/b"])
def test_spared_claims_must_hold(compiled: Subject, build: object, n_faults: int, spares: str) -> None:
    spared = Control("win-permuted", "", build, spares=("other", spares))  # pyright: ignore
    breaking = Control("qk1-rotated", "", scaled)
    found = matrix_faults(control_matrix(compiled, [claim(("qk1-rotated",))], [breaking, spared], []))
    assert len(found) == n_faults, found
    assert all("a/b fails under win-permuted" in fault and "nothing to do with it" in fault for fault in found)


def test_a_trained_control_must_break_what_it_says(compiled: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    control = TrainedControl("stays-good", "", TrainConfig(task=compiled.task), breaks=("a",), spares=())
    monkeypatch.setattr(TrainedControl, "apply", lambda self, subject, seed: subject)
    monkeypatch.setattr(TrainedControl, "load", lambda self: compiled.parameters)
    breaking = Control("qk1-rotated", "", scaled)
    found = matrix_faults(control_matrix(compiled, [claim(("qk1-rotated",))], [breaking, control], []))
    assert len(found) == 1, found
    assert "a/b holds under stays-good" in found[0], found
    assert "built to break it" in found[0], found


@pytest.mark.parametrize(("content", "expected"), [(None, "is missing"), ("other", "is not the last step of the run")])
def test_the_file_of_a_trained_control_is_checked_before_the_work(
    compiled: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, expected: str
) -> None:
    control = TrainedControl("some", "", TrainConfig(task=compiled.task), breaks=("a",), spares=())
    monkeypatch.setattr("aa_core.controls.control.fixtures", lambda: tmp_path)
    if content is not None:
        control.path.parent.mkdir()
        sizes = inferred_model(compiled)
        config = TrainConfig(compiled.task, sizes, compiled.split.config, steps=5, checkpoint_every=((10, 5),))
        save_checkpoint(control.path, compiled.parameters, config, 5)
    with pytest.raises(InputError, match=rf"some.safetensors {expected}.*aa fixture --trained"):
        control_matrix(compiled, [claim()], [control], [])


def inferred_model(subject: Subject) -> ModelConfig:
    d_model, d_mlp = subject.parameters["blocks.1.mlp.W_in"].shape
    return ModelConfig(d_model, subject.parameters["blocks.0.attn.W_Q"].shape[-1], d_mlp)


def test_trained_controls_are_for_their_own_sizes(compiled: Subject) -> None:
    other = TrainedControl("other-sizes", "", TrainConfig(task=TaskConfig(11)), breaks=(), spares=())
    assert control_matrix(compiled, [claim()], [other], []).changes == ()


def test_undecided_is_not_broken(compiled: Subject) -> None:
    def wide(subject: Subject) -> Measurement:
        return Measurement(scale(subject).value, n=10, spread=10.0)

    assert "a/b undecided under win-permuted" in " ".join(faults(compiled, claim(measure=wide)))


def test_rows_of_a_trajectory(run: TrajectorySubject) -> None:
    controls = [CONTROLS["uniform-attention-0"], CONTROLS["win-permuted"], TRAJECTORY_CONTROLS["never-binds"]]
    order = dataclasses.replace(
        select_claims("order/0-var-before-1L")[0], broken_by=("never-binds", "uniform-attention-0")
    )
    claims = [*select_claims("previous-token/argmax"), order]
    matrix = control_matrix(run, claims, controls, [SYMMETRIES["neurons-permuted"]])
    rows = {(row.control, row.claim): row.verdict for row in matrix.rows}
    assert rows == {
        ("none", "previous-token/argmax"): "holds",
        ("none", "order/0-var-before-1L"): "holds",
        ("uniform-attention-0", "previous-token/argmax"): "fails",
        ("uniform-attention-0", "order/0-var-before-1L"): "fails",
        ("win-permuted", "previous-token/argmax"): "holds",
        ("never-binds", "order/0-var-before-1L"): "fails",
        ("neurons-permuted", "previous-token/argmax"): "holds",
        ("neurons-permuted", "order/0-var-before-1L"): "holds",
    }
    assert matrix.breaks() == {
        "uniform-attention-0": ["previous-token/argmax", "order/0-var-before-1L"],
        "win-permuted": [],
        "never-binds": ["order/0-var-before-1L"],
    }


def test_matrix_of_a_model_leaves_trajectories_out(compiled: Subject) -> None:
    claims = select_claims("previous-token/argmax,order/0-var-before-1L")
    matrix = control_matrix(compiled, claims, [TRAJECTORY_CONTROLS["never-binds"]], [])
    assert [(row.claim, row.group) for row in matrix.rows] == [("previous-token/argmax", Group.ITSELF)]


def test_matrix_file(compiled: Subject, tmp_path: Path) -> None:
    undefined = claim(measure=lambda subject: exact(float("nan")))
    matrix = control_matrix(compiled, [undefined], [Control("win-permuted", "", scaled)], [], seeds=(0, 1))
    write_matrix(matrix, tmp_path / "a.json")
    write_matrix(matrix, tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    read = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    assert read["weights_sha256"] == matrix.weights
    assert read["faults"] == matrix_faults(matrix)
    assert read["breaks"] == [{"win-permuted": ["a/b"]}]
    assert [(row["control"], row["seed"], row["value"]) for row in read["rows"]] == [
        ("none", 0, None),
        ("win-permuted", 0, None),
        ("win-permuted", 1, None),
    ]


@pytest.mark.slow
def test_controls_on_the_model_under_test(model_under_test: ModelUnderTest) -> None:
    found = matrix_faults(control_matrix(model_under_test.subject, CLAIMS, BREAKING_CONTROLS.values(), []))
    assert not found, "\n".join(found)
