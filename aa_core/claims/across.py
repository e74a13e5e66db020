"""How often claims hold over several models, such as the seeds of a matrix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aa_core.statistics import Measurement, Verdict, shared_alpha


@dataclass(frozen=True)
class PassCount:
    """A claim over several models.

    Attributes:
        claim: its id.
        share: models on which it holds, among those on which it was judged.
        interval: exact interval of the share of such models, at `FAMILY_ALPHA` shared out over the claims.
    """

    claim: str
    share: Measurement
    interval: tuple[float, float]


def pass_counts(verdicts: Iterable[tuple[str, Verdict | str]]) -> list[PassCount]:
    """Count, by claim id, the verdicts over models, in the order in which claims first occur.

    Skipped claims are left out; undecided ones count as judged and not held.
    """
    held: dict[str, list[bool]] = {}
    for claim, verdict in verdicts:
        if verdict != Verdict.SKIPPED:
            held.setdefault(claim, []).append(verdict == Verdict.HOLDS)
    counts = []
    for claim, outcomes in held.items():
        share = Measurement(sum(outcomes) / len(outcomes), len(outcomes), sum(outcomes))
        interval = share.interval(shared_alpha(len(held)))
        assert interval is not None, "a count has one"
        counts.append(PassCount(claim, share, interval))
    return counts
