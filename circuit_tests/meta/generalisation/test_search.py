"""The search: who is to blame, worst layouts, smallest wrong sequences, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from aa_core.checkpoints import save_checkpoint
from aa_core.circuits.subject import Subject
from aa_core.cli.main import main
from aa_core.controls.edits import shifted_scores
from aa_core.generalisation.diagnosis import RoleAccuracy, role_accuracy
from aa_core.generalisation.drawing import Region, random_choices, random_layouts
from aa_core.generalisation.hypothesis_search import scored_by_target, wrong_sequence
from aa_core.generalisation.moves import MOVES
from aa_core.generalisation.search import scored_at_random, scored_step_by_step
from aa_core.generalisation.whole_search import Search
from aa_core.report.search_table import print_search
from aa_core.report.table import terminal
from aa_core.task.sampling import KINDS, Kind
from aa_core.task.split import Split, SplitConfig
from circuit_tests.meta.checkpoint_files import small_config, small_parameters
from circuit_tests.meta.compiled_model import SPLIT, TASK


@pytest.fixture(scope="module")
def b_unseen(good: Subject) -> Subject:
    """`=` does not see the letter b, and every other letter as before."""
    letter = torch.tensor([TASK.first_variable_token + 1]).numpy()
    equals = torch.tensor([TASK.equals_token]).numpy()
    return replace(good, parameters=shifted_scores(good.parameters, equals, letter, -20.0))


def test_a_good_model_is_not_blamed(good: Subject) -> None:
    roles = role_accuracy(good, Region(SPLIT))
    assert len(roles.accuracy) == 1 + 6 + 6 + 30
    assert min(roles.accuracy.values()) == 1
    assert roles.causes() == []


def test_a_letter_is_blamed_on_each_side(b_unseen: Subject) -> None:
    causes = role_accuracy(b_unseen, Region(SPLIT)).causes()
    assert sorted(cause.text for cause in causes) == ["b on the left (1L, 2-var)", "b on the right (1R, 2-var)"]


def planted(region: Region, **accuracy: float) -> list[str]:
    """Who is blamed where all is right but what is given, such as `ab=0.2`, `_b=0` or `c_=0.5`."""
    values = {letters: 1.0 for choices in region.operands.values() for letters in choices}
    for name, value in accuracy.items():
        left, right = (None if letter == "_" else letter for letter in name)
        assert (left, right) in values
        values[left, right] = value
    return [cause.text for cause in RoleAccuracy(region, values).causes()]


@pytest.mark.parametrize(
    ("accuracy", "blamed"),
    [
        ({"ab": 0.2}, ["the pair a+b"]),
        ({"ab": 0.8, "cd": 0.2}, ["the pair c+d", "the pair a+b"]),
        ({"_b": 0.1}, ["b on the right (1R)"]),
        ({"_b": 0.1, **{f"{left}b": 0.1 for left in "acdef"}}, ["b on the right (1R, 2-var)"]),
        ({"_b": 0.1, **{f"{left}b": 0.1 for left in "acdef"}, "ad": 0}, ["b on the right (1R, 2-var)", "the pair a+d"]),
        ({f"{letter}_": 0.3 for letter in "abcdef"}, ["1L as a whole"]),
        ({"__": 0.5}, ["0-var as a whole"]),
        ({"ab": 0.91}, []),
        ({f"{letter}_": 0.3 for letter in "abcde"}, ["1L as a whole"]),
        ({f"{letter}_": 0.3 for letter in "abcd"}, [f"{letter} on the left (1L)" for letter in "abcd"]),
        ({f"{left}b": 0.1 for left in "acd"}, ["the pair a+b", "the pair c+b", "the pair d+b"]),
        (
            {**{f"{left}b": 0.1 for left in "acdef"}, **{f"c{right}": 0.01 for right in "abd"}},
            ["b on the right (1R, 2-var)", "the pair c+a", "the pair c+d"],
        ),
    ],
)
def test_blame_falls_on_what_explains_most(accuracy: dict[str, float], blamed: list[str]) -> None:
    assert planted(Region(SPLIT), **accuracy) == blamed


@pytest.mark.parametrize(
    ("kinds", "restricted", "accuracy", "blamed"),
    [
        ((Kind.LEFT, Kind.RIGHT), 1, {"_b": 0.044}, ["b on the right (1R)"]),
        ((Kind.LEFT, Kind.RIGHT), 1, {"_b": 0.044, "_a": 0.1}, ["1R as a whole"]),
        ((Kind.TWO,), 2, {"eb": 0.1, "fb": 0.2}, ["b on the right (2-var)"]),
        ((Kind.TWO,), 2, {"fb": 0.2}, ["the pair f+b"]),
        (  # c is worst, yet a and b explain c, too
            (Kind.TWO,),
            1,
            {"ba": 0.1, "ca": 0.01, "da": 0.1, "ab": 0.2, "cb": 0.02, "db": 0.2},
            ["a on the right (2-var)", "b on the right (2-var)"],
        ),
    ],
)
def test_few_letters_are_blamed_one_by_one(
    kinds: tuple[Kind, ...], restricted: int, accuracy: dict[str, float], blamed: list[str]
) -> None:
    split = Split(TASK, SplitConfig(never_left="ef", never_right="ab"))
    assert planted(Region(split, kinds, restricted), **accuracy) == blamed


@pytest.mark.parametrize("kind", KINDS)
def test_moves_stay_in_the_region(kind: Kind) -> None:
    region = Region(SPLIT, (kind,), restricted=0)
    choose = random_choices(0, 0)
    made: set[int] = set()
    for layout in islice(random_layouts(region, 0), 60):
        for number, move in enumerate(MOVES):
            moved = move(region, layout, choose)
            if moved is not None and moved != layout:
                moved.check(TASK)
                assert moved.operands in region.operands[kind]
                made.add(number)
    assert made == set(range(len(MOVES))), "a move is never made"


def test_steps_find_worse_layouts_than_chance(random_model: Subject) -> None:
    region = Region(SPLIT, (Kind.TWO,))
    at_random = scored_at_random(random_model, region, 30, 0)
    by_target = scored_by_target(random_model, region, 30, 0)
    worst = scored_step_by_step(random_model, region, at_random, 200, 0)
    assert at_random == sorted(at_random)
    assert worst[0][0] < at_random[0][0]
    assert len(by_target) == 30
    assert scored_by_target(random_model, region, 30, 0) == by_target, "the same seed, other layouts"


def test_wrong_sequence(b_unseen: Subject, good: Subject, tmp_path: Path) -> None:
    region = Region(SPLIT, (Kind.RIGHT,))
    found = wrong_sequence(b_unseen, region, 300, database=tmp_path, key="model")
    assert found is not None
    assert found.right == "b", found.text(TASK)
    assert len(found.assignments) == 1, found.text(TASK)
    assert list(tmp_path.iterdir()), "nothing is kept for the next search"
    assert wrong_sequence(b_unseen, region, 1, database=tmp_path, key="model") == found, "not replayed"
    assert wrong_sequence(good, region, 30) is None


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "step_25.safetensors"
    save_checkpoint(path, small_parameters(), small_config(), 25)
    return path


def test_command_finds_and_replays(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "found.json"
    where = ["--checkpoint", str(checkpoint), "--cache", str(tmp_path / "cache")]
    assert main(["search", *where, "--budget", "4", "--kind", "1R", "--json", str(report)]) == 1
    printed = capsys.readouterr().out
    assert "to blame: 1R as a whole" in printed
    [kind] = json.loads(report.read_text())["kinds"]
    smallest = kind["failure"]["sequence"]
    assert f"the smallest wrong one: {smallest['text']}" in printed
    for text in (kind["worst"]["text"], kind["example"]["text"]):
        assert text in printed
    assert main(["search", *where, "--replay", str(report)]) == 0
    assert "all as recorded" in capsys.readouterr().out
    for sequence in (smallest, kind["example"]):
        assert main(["ask", sequence["text"], *where]) == 1
        assert f"model {sequence['model']}, true {sequence['answer']}: wrong" in capsys.readouterr().out

    found = json.loads(report.read_text())
    found["kinds"][0]["worst"]["accuracy"] += 0.5
    report.write_text(json.dumps(found))
    assert main(["search", *where, "--replay", str(report)]) == 1
    assert "1 differ from what was recorded" in capsys.readouterr().out


def test_causes_that_are_left_out_are_counted(capsys: pytest.CaptureFixture[str], random_model: Subject) -> None:
    record = Search(random_model, Region(SPLIT, (Kind.LEFT,)), 2, 0).run({}, lambda items, title: items)
    assert record.n_causes == len(record.causes) == 1
    print_search(terminal(), record.model_copy(update={"n_causes": 4}), "")
    assert "and: 3 more that explain less" in capsys.readouterr().out


def test_interrupted_in_the_middle(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("aa_core.generalisation.hypothesis_search.score", interrupted)
    assert main(["search", "--checkpoint", str(checkpoint), "--json", str(tmp_path / "x.json")]) == 130
    output = capsys.readouterr()
    assert output.err == "aa: interrupted\n", "a search starts anew"
    assert output.out == ""
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--kind", "3-var"], "--kind '3-var': expected one of 0-var, 1L, 1R, 2-var"),
        (["--pool", "3-var/seen"], "--pool '3-var/seen': expected one of 0-var/seen"),
        (["--budget", "0"], "--budget is 0"),
        (["--search-seed", "-1"], "--search-seed is -1"),
        (["--replay", "absent.json"], "absent.json: No such file"),
        (["--replay", "x", "--kind", "1L"], "leave --kind out"),
        (["--properties", "x", "--pool", "1L"], "leave --pool out"),
        (["--properties", "."], "cannot write"),
        (["--json", "{checkpoint}"], "is what --checkpoint reads"),
        (["--budget", "99999999999999999999"], "expected 1 to 1000000"),
        (["--json", "."], "cannot write"),
        (["--replay", "{checkpoint}"], "not a file of aa search --json"),
    ],
)
def test_bad_input(arguments: list[str], expected: str, checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled = [argument.format(checkpoint=checkpoint) for argument in arguments]
    assert main(["search", "--checkpoint", str(checkpoint), *filled]) == 2
    output = capsys.readouterr()
    assert expected in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""
