"""The topics of DescribeTopicPartitions' answers, whole or cut by the end of a page."""

from __future__ import annotations

from functools import lru_cache

from broker_core.kafka.acls.bindings import TOPIC_OPERATIONS
from broker_core.kafka.topic_names import INTERNAL
from broker_core.listing.topic_table import TopicRow
from broker_core.wire.kafka.topic_fragments.family import Family, Layout, partition_block
from broker_core.wire.kafka.writer import Encoded, unsigned_varint

__all__ = ["described_family", "described_partitions", "described_topic"]


@lru_cache(maxsize=8)
def described_family(node_id: int) -> Family:
    """The family of the one version, of topics that the one node leads, with all operations."""

    def tail(internal: bool, partitions: int) -> bytes:
        return _tail(node_id, internal, 0, partitions, TOPIC_OPERATIONS)

    return Family(("described", node_id), Layout(b"\0\0", True, True, tail).render, 1)


def described_topic(row: TopicRow, node_id: int, start: int, stop: int, operations: int) -> bytes:
    """One topic with its partitions from ``start`` on, without ``stop``."""
    head = b"\0\0" + unsigned_varint(len(row.name) + 1) + row.name + row.topic_id
    return head + _tail(node_id, row.name.decode() in INTERNAL, start, stop, operations)


def described_partitions(node_id: int, start: int, stop: int) -> Encoded:
    """Partitions of a topic from ``start`` on, without ``stop``, for a field."""
    return Encoded(max(stop - start, 0), (partition_block(_partition(node_id), stop, start),))


def _tail(node_id: int, internal: bool, start: int, stop: int, operations: int) -> bytes:
    return b"".join(
        (
            b"\1" if internal else b"\0",
            unsigned_varint(max(stop - start, 0) + 1),
            partition_block(_partition(node_id), stop, start),
            operations.to_bytes(4, "big", signed=True),
            b"\0",
        )
    )


@lru_cache(maxsize=8)
def _partition(node_id: int) -> bytes:
    """The partition of number 0."""
    node = node_id.to_bytes(4, "big", signed=True)
    one, none = b"\x02" + node, b"\x01"
    return bytes(6) + node + bytes(4) + one + one + none + none + none + b"\0"
