"""The assign-and-add task: its sizes, what training may see, draws of sequences, and problems as text."""

from aa_core.task.config import TaskConfig
from aa_core.task.problems import Problem, parse_problem, problem_from_tokens, sequences_from_problems
from aa_core.task.sampling import KINDS, POOLS, Kind, Pool, full_prefix_sequences, pool_sequences, training_batch
from aa_core.task.sequences import NO_VARIABLE, Sequences, concatenate
from aa_core.task.split import Split, SplitConfig

__all__ = [
    "KINDS",
    "NO_VARIABLE",
    "POOLS",
    "Kind",
    "Pool",
    "Problem",
    "Sequences",
    "Split",
    "SplitConfig",
    "TaskConfig",
    "concatenate",
    "full_prefix_sequences",
    "parse_problem",
    "pool_sequences",
    "problem_from_tokens",
    "sequences_from_problems",
    "training_batch",
]
