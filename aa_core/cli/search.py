"""`aa search`: where a model fails, searched for."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from aa_core.cli.options import add_subject_options, path, subject_checkpoints
from aa_core.cli.outputs import check_outputs
from aa_core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from aa_core.checkpoints import Checkpoint
    from aa_core.circuits.subject import Subject
    from aa_core.generalisation.drawing import Region
    from aa_core.task.split import Split

BUDGET = 100

MOST_BUDGET = 1_000_000


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "search",
        help="search for the sequences that a model fails on, and for what they have in common",
        description="Accuracy by letter and side and by pair of letters, what is to blame, the worst layouts found, "
        "and a wrong sequence of each kind: the smallest, or a small one where all of the simplest are right. Each "
        "accuracy is over all pairs of values, each in a layout of its own as training draws them: any number of "
        "assignments, PADs anywhere. (The accuracy of aa verify is on full prefixes, and differs.) In a layout, L and "
        "R stand for the values of the operands and _ for a PAD.",
        epilog="Wrong sequences that Hypothesis finds are kept in the cache and tried first by the next search, unless "
        "CI is set. "
        "exit code: 0 nothing is to blame (or, with --replay, all is as recorded), 1 otherwise, 2 bad input",
    )
    add_subject_options(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--kind", metavar="KIND", help="only 0-var, 1L, 1R or 2-var")
    where.add_argument("--pool", metavar="POOL", help="only an evaluation pool, such as 1-var/restricted")
    parser.add_argument(
        "--budget",
        type=int,
        default=BUDGET,
        metavar="N",
        help=f"layouts to try at random, by target and by steps, each, for each kind (default {BUDGET})",
    )
    parser.add_argument(
        "--search-seed", type=int, default=0, metavar="N", help="seed of the search for layouts (default 0)"
    )
    parser.add_argument("--json", type=path, metavar="FILE", help="write what was found to FILE as JSON")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--replay", type=path, metavar="FILE", help="judge again what --json wrote, without a search")
    instead.add_argument(
        "--properties",
        type=path,
        metavar="FILE",
        help="write to FILE, as Markdown, what the tests of properties state, without a model or a search",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search and print, or judge again what an earlier search found."""
    from aa_core.circuits.subject import Subject

    _check(options)
    if options.properties is not None:
        return _write_properties(options.properties)
    loaded = subject_checkpoints(options)
    last = loaded.final
    subject = Subject(last.parameters, last.split)
    return _search(options, subject, last) if options.replay is None else _replay(options.replay, subject)


def _search(options: argparse.Namespace, subject: Subject, checkpoint: Checkpoint) -> int:
    from rich.text import Text

    from aa_core.cli.progress import bar
    from aa_core.files import write_atomically
    from aa_core.generalisation.whole_search import Search
    from aa_core.report.search_table import print_search
    from aa_core.report.table import terminal
    from aa_core.runs import default_root

    search = Search(
        subject,
        _region(options, subject.split),
        options.budget,
        options.search_seed,
        None if os.environ.get("CI") else (options.cache or default_root()) / "hypothesis",
        checkpoint.sha256,
    )
    about = {"path": str(checkpoint.path), "hash": checkpoint.sha256, "step": checkpoint.step}
    record = search.run(about, lambda items, title: bar(items, len(items), title))
    console = terminal()
    step = "unknown" if checkpoint.step is None else checkpoint.step
    console.print(Text(f"{checkpoint.path}, step {step}"), soft_wrap=True)
    print_search(console, record, "" if options.checkpoint is None else str(options.checkpoint))
    if options.json is not None:
        write_atomically(options.json, (record.model_dump_json(indent=2) + "\n").encode())
    return 1 if record.causes else 0


def _replay(file: Path, subject: Subject) -> int:
    from rich.text import Text

    from aa_core.generalisation.records import load_search, replayed
    from aa_core.report.table import terminal

    console, differences = terminal(), 0
    for line in replayed(load_search(file), subject):
        console.print(Text(line.text, "" if line.same else "bold red"), soft_wrap=True)
        differences += not line.same
    console.print(f"{differences} differ from what was recorded" if differences else "all as recorded")
    return 1 if differences else 0


def _write_properties(file: Path) -> int:
    from aa_core.files import write_atomically
    from aa_core.generalisation.properties_page import properties_page

    write_atomically(file, properties_page().encode())
    return 0


def _region(options: argparse.Namespace, split: Split) -> Region:
    """The part of all sequences that `--kind` or `--pool` names.

    Raises:
        InputError: there is no such kind or pool, or the split has no such sequence.
    """
    from aa_core.generalisation.drawing import Region
    from aa_core.task.sampling import KINDS, POOLS, Kind

    if options.pool is not None:
        if options.pool not in POOLS:
            raise InputError(f"--pool {options.pool!r}: expected one of {', '.join(POOLS)}")
        pool = POOLS[options.pool]
        return Region(split, pool.kinds, pool.restricted, pool.held_out)
    if options.kind is None:
        return Region(split)
    if options.kind not in {*KINDS}:
        raise InputError(f"--kind {options.kind!r}: expected one of {', '.join(KINDS)}")
    return Region(split, (Kind(options.kind),))


def _check(options: argparse.Namespace) -> None:
    """Refuse what cannot work before the model is loaded.

    Raises:
        InputError: an option is out of range or contradicts another, a file cannot be written, or Hypothesis is not
            installed.
    """
    if not 1 <= options.budget <= MOST_BUDGET:
        raise InputError(f"--budget is {options.budget}, expected 1 to {MOST_BUDGET}")
    if not 0 <= options.search_seed < 2**64:
        raise InputError(f"--search-seed is {options.search_seed}, expected 0 to 2**64 - 1")
    for instead in ("replay", "properties"):
        if getattr(options, instead) is not None:
            given = [name for name in ("json", "kind", "pool") if getattr(options, name) is not None]
            if given:
                raise InputError(f"--{instead} makes no search: leave --{given[0]} out")
            check_outputs({"--markdown": options.properties}, {"--replay": options.replay})
            return
    import aa_core.generalisation.strategies  # noqa: F401 - refuses where Hypothesis is missing

    check_outputs({"--json": options.json}, {"--checkpoint": options.checkpoint})
