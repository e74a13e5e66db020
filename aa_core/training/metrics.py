"""What is measured along training: the pools, full prefixes, and cheap measures of the circuit."""

from __future__ import annotations

from aa_core.circuits.accuracy import full_prefix_accuracy, pool_accuracy
from aa_core.circuits.attention import equals_operand_weights, previous_token_weight
from aa_core.circuits.identity import identity_argmax, identity_z
from aa_core.circuits.subject import DataConfig, Subject
from aa_core.model.parameters import Parameters
from aa_core.task.sampling import KINDS, POOLS, Kind
from aa_core.task.split import Split
from aa_core.training.config import TrainConfig
from aa_core.training.loop import Measure


def metrics_for(config: TrainConfig) -> Measure:
    """The measures of each row of a run's metrics, as a function of its weights.

    `pool/NAME` and `full-prefix/KIND` are accuracies on `log_sequences` sequences each (none for a pool that the
    split leaves empty); `previous-token/weight`, `equals-to-left/1L` (blocks.0 weight of `=` on the left operand),
    `identity/z` and `identity/argmax` are the measures of those mechanisms.
    """
    split = Split(config.task, config.split)
    data = DataConfig(full_prefix=config.log_sequences, pool=config.log_sequences)

    def measure(weights: Parameters) -> dict[str, float]:
        subject = Subject({name: weight.float().cpu() for name, weight in weights.items()}, split, data)
        return {
            **{f"pool/{name}": pool_accuracy(subject, name).value for name in POOLS if subject.pool(name) is not None},
            **{f"full-prefix/{kind}": full_prefix_accuracy(subject, kind).value for kind in KINDS},
            "previous-token/weight": previous_token_weight(subject).value,
            "equals-to-left/1L": float(equals_operand_weights(subject, 0, Kind.LEFT)[:, 0].mean()),
            "identity/z": identity_z(subject).value,
            "identity/argmax": identity_argmax(subject).value,
        }

    return measure
