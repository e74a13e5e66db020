"""The run store: every training run is trained once, in a folder of its own, and found again by what determines it."""

from aa_core.runs.entry import Manifest, Run
from aa_core.runs.store import Progress, RunStore, default_root

__all__ = ["Manifest", "Progress", "Run", "RunStore", "default_root"]
