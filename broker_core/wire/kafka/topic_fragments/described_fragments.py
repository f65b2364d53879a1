"""The topics of DescribeTopicPartitions' answers."""

from __future__ import annotations

from functools import lru_cache, partial

from broker_core.kafka.acls import TOPIC_OPERATIONS
from broker_core.wire.kafka.topic_fragments.family import Family, Layout, partition_block
from broker_core.wire.kafka.writer import Encoded, Numbered, unsigned_varint

__all__ = ["described_family", "described_partitions"]


@lru_cache(maxsize=8)
def described_family(node_id: int) -> Family:
    """The family of the only version, for topics that the one node leads, with all operations."""
    return Family(("described", node_id), Layout(b"\0\0", True, True, partial(_tail, node_id)), 1)


def described_partitions(node_id: int, count: int) -> Numbered:
    """The partitions of a topic, for a field."""
    return Numbered(count, partial(_encoded, node_id))


def _encoded(node_id: int, start: int, stop: int) -> Encoded:
    return Encoded(max(stop - start, 0), (partition_block(_partition(node_id), stop, start),))


def _tail(node_id: int, internal: bool, start: int, stop: int, operations: int | None) -> bytes:
    return b"".join(
        (
            b"\1" if internal else b"\0",
            unsigned_varint(max(stop - start, 0) + 1),
            partition_block(_partition(node_id), stop, start),
            (TOPIC_OPERATIONS if operations is None else operations).to_bytes(4, "big", signed=True),
            b"\0",
        )
    )


@lru_cache(maxsize=8)
def _partition(node_id: int) -> bytes:
    """The partition of number 0."""
    node = node_id.to_bytes(4, "big", signed=True)
    one, none = b"\x02" + node, b"\x01"
    return bytes(6) + node + bytes(4) + one + one + none + none + none + b"\0"
