"""The operations that the asker may do with a topic or the cluster, as in answers: a bit for each operation."""

from __future__ import annotations

from broker_core.kafka.acls import Operation
from broker_core.wire.kafka import NOT_REQUESTED

__all__ = ["authorized_operations"]


def authorized_operations(bits: int) -> frozenset[Operation] | None:
    """The operations; ``None`` if they were not asked for. Bits that have no name here are left out."""
    if bits == NOT_REQUESTED:
        return None
    return frozenset(
        operation for operation in Operation if operation > Operation.ANY and bits >> operation & 1
    )
