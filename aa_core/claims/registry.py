"""All claims, in the paper's order."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from aa_core.claims import (
    accuracy,
    addition,
    causal,
    fourier,
    generalisation,
    gradient,
    identity,
    isolated_circuit,
    order,
    previous_token,
    probes,
    refinement,
    representation,
    routing,
    spike,
)
from aa_core.claims.claim import Claim
from aa_core.errors import InputError
from aa_core.statistics import shared_alpha

CLAIMS: tuple[Claim, ...] = (
    *accuracy.CLAIMS,
    *order.CLAIMS,
    *spike.CLAIMS,
    *refinement.CLAIMS,
    *previous_token.CLAIMS,
    *identity.CLAIMS,
    *routing.CLAIMS,
    *representation.CLAIMS,
    *fourier.CLAIMS,
    *addition.CLAIMS,
    *generalisation.CLAIMS,
    *probes.CLAIMS,
    *gradient.CLAIMS,
    *causal.CLAIMS,
    *isolated_circuit.CLAIMS,
)


def interval_alpha(n_models: int = 1) -> float:
    """Error rate of one interval: `FAMILY_ALPHA` shared out over every criterion of the registry and every model.

    It does not depend on which claims are selected, so neither does a verdict.

    Args:
        n_models: models that are judged together, such as the seeds of a matrix.
    """
    return shared_alpha(n_models * sum(len(claim.criteria) for claim in CLAIMS))


def select_claims(patterns: str | None, claims: Sequence[Claim] = CLAIMS) -> list[Claim]:
    """Claims whose id matches one of the comma-separated ids, families or glob patterns; all for None.

    Args:
        patterns: the ids, families or patterns.
        claims: from which to select.

    Raises:
        InputError: a pattern matches no claim.
    """
    if patterns is None:
        return list(claims)
    chosen: set[str] = set()
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        matched = {claim.id for claim in claims if fnmatch.fnmatchcase(claim.id, pattern) or claim.family == pattern}
        if not matched:
            families = ", ".join(dict.fromkeys(claim.family for claim in claims))
            raise InputError(f"--claims {pattern!r} matches no claim; families are {families}")
        chosen |= matched
    if not chosen:
        raise InputError("--claims names no claim")
    return [claim for claim in claims if claim.id in chosen]
