"""The committed run: a final model of this code and a thinned trajectory to it."""

from __future__ import annotations

import json
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

from aa_core.errors import InputError
from aa_core.runs import Run
from aa_core.task.sampling import KINDS, Kind

N_CHECKPOINTS = 17  # 18.4 MiB; the fixture is kept under 20
NAME = "paper"


def fixtures() -> Path:
    """The folder of fixtures, in the checkout that this package is installed from."""
    return Path(__file__).parents[1] / "fixtures"


def fixture_folder() -> Path:
    """Where the fixture is.

    Raises:
        InputError: it is not there.
    """
    folder = fixtures() / NAME
    if folder.is_dir():
        return folder
    raise InputError(
        f"{folder} is missing: install from a checkout (pip install -e), or name a model with --checkpoint or --seed"
    )


def thinned_steps(run: Run, n: int = N_CHECKPOINTS) -> list[int]:
    """The steps of a trajectory to keep.

    First and last; the checkpoints before and after each change that claims are about (the first time that a kind,
    or the restricted letters, are answered to 95 %, and the steepest rise of 1L and of 1R); the rest as near to a
    geometric series as the run's own checkpoints allow.
    """
    steps = np.array(list(run.checkpoint_paths))
    rows = run.metrics()
    kept = {int(steps[0]), int(steps[-1])}
    for curve in (*(f"full-prefix/{kind}" for kind in KINDS), "pool/1-var/restricted"):
        learned = next((row["step"] for row in rows if row[curve] >= 0.95), steps[-1])
        kept |= {int(steps[steps < learned].max()), int(steps[steps >= learned].min())}
    for curve in (f"full-prefix/{Kind.LEFT}", f"full-prefix/{Kind.RIGHT}"):
        value = np.interp(steps, [row["step"] for row in rows], [row[curve] for row in rows])
        steepest = int(np.diff(value).argmax())
        kept |= {int(steps[steepest]), int(steps[steepest + 1])}
    while len(kept) < min(n, len(steps)):
        gaps = ((later / max(earlier, 50), earlier, later) for earlier, later in pairwise(sorted(kept)))
        for _, earlier, later in sorted(gaps, reverse=True):
            between = steps[(steps > earlier) & (steps < later)]
            if len(between):
                middle = (max(earlier, 50) * later) ** 0.5
                kept.add(int(between[np.abs(np.log(between / middle)).argmin()]))
                break
    return sorted(kept)


def write_fixture(run: Run, folder: Path) -> list[int]:
    """Replace a fixture by a thinned copy of a run: checkpoints, config, metrics and the run's manifest.

    Returns:
        The steps that were kept.

    Raises:
        InputError: the folder holds something else than a fixture, or cannot be written; it then stays as it was.
    """
    folder = folder.resolve()
    if folder.exists() and not (folder / "manifest.json").is_file() and (folder.is_file() or any(folder.iterdir())):
        raise InputError(f"{folder} is there and is not a fixture: choose another place")
    steps = thinned_steps(run)
    manifest = json.loads((run.folder / "manifest.json").read_text())
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
            made, old = Path(temporary) / "new", Path(temporary) / "old"
            names = ["config.json", "metrics.jsonl"]
            names += [str(run.checkpoint_paths[step].relative_to(run.folder)) for step in steps]
            for name in names:
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(run.folder / name, made / name)
            manifest["files"] = {name: manifest["files"][name] for name in names}
            (made / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
            if folder.exists():
                folder.rename(old)
            try:
                made.rename(folder)
            except OSError:
                old.rename(folder)
                raise
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    return steps
