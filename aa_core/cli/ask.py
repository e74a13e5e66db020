"""`aa ask`: the model's answer to one problem, and what `=` attended to."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from aa_core.cli.options import add_subject_options, subject_checkpoints
from aa_core.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from aa_core.circuits.subject import Run
    from aa_core.task.config import TaskConfig

LIKELIEST = 3


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "ask",
        help='a problem such as "c=17, b=42, b+19=?"',
        description="The model's answer, the true one, and what `=` attended to. PADs may be written as _.",
    )
    parser.add_argument("problem", metavar="PROBLEM", help='such as "c=17, b=42, b+19=?"')
    add_subject_options(parser)
    parser.set_defaults(run=run, goes_on=True)


def run(options: argparse.Namespace) -> int:
    """Print the answers and the attention; 0 if the model is right, else 1."""
    from rich.text import Text

    from aa_core.claims.subjects import as_subject
    from aa_core.report.table import terminal
    from aa_core.task.problems import parse_problem, sequences_from_problems

    loaded = subject_checkpoints(options)
    last = loaded.final
    problem = parse_problem(last.task, options.problem)
    subject = as_subject(loaded)
    model = subject.final
    answered = model.run(sequences_from_problems(last.task, [problem]))
    if not answered.activations.logits.isfinite().all():
        raise InputError(f"{last.path}: its weights are so large that no answer is a finite number; try another model")
    top = answered.activations.logits[0].softmax(-1).topk(min(LIKELIEST, last.task.modulus))
    answer, true = int(top.indices[0]), problem.answer(last.task)

    console = terminal()
    step = "unknown" if last.step is None else last.step
    console.print(Text(f"{problem.text(last.task)}   ({last.path}, step {step})"), soft_wrap=True)
    verdict = "[green]right[/]" if answer == true else "[bold red]wrong[/]"
    likely = ", ".join(f"{int(i)} ({p:.1%})" for p, i in zip(top.values, top.indices, strict=True))
    console.print(f"model {answer}, true {true}: {verdict}; likeliest {likely}")
    console.print(attention_table(last.task, answered))
    return 0 if answer == true else 1


def attention_table(task: TaskConfig, run: Run) -> Table:
    """What `=` attends to in both layers, by position; the operands' source constants are marked."""
    from rich import box
    from rich.table import Table

    rows = (run.activations.pattern0[0, -1], run.activations.pattern1[0])
    table = Table(title="attention of =", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("position", "token", "blocks.0", "blocks.1"):
        table.add_column(column, justify="left" if column == "token" else "right")
    for position, token in enumerate(run.sequences.tokens[0]):
        symbol = token_text(task, int(token)) + (" *" if position in run.sequences.sources[0] else "")
        weights = (f"{float(row[position]):.2f} {'█' * round(10 * float(row[position])):<10}" for row in rows)
        table.add_row(str(position), symbol, *weights)
    table.caption = "* the constants whose sum is the answer"
    table.caption_justify = "left"
    return table


def token_text(task: TaskConfig, token: int) -> str:
    """A token as people write it; PAD is `_`."""
    if token < task.modulus:
        return str(token)
    return ("+", "=", "_", *task.variables)[token - task.modulus]
