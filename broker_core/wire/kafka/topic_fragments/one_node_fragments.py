"""The topics of answers of a server whose one node leads all partitions."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from broker_core.kafka.acls import TOPIC_OPERATIONS, ResourceType
from broker_core.wire.kafka.known_apis import NOT_REQUESTED
from broker_core.wire.kafka.topic_fragments.family import Family, Layout, partition_block
from broker_core.wire.kafka.writer import Encoded, Numbered, unsigned_varint

__all__ = [
    "LISTED_FAMILY",
    "RESOURCE_FAMILY",
    "config_resource",
    "described_family",
    "described_partitions",
    "family_version",
    "log_dir_family",
    "metadata_family",
    "metadata_partitions",
]

#: Partitions of a topic that are encoded once: most topics have few.
_FEW: Final = 32


def _encoded(partition: bytes, start: int, stop: int) -> Encoded:
    """A range of partitions like number 0."""
    if not start and stop <= _FEW:
        return _few(partition, stop)
    return Encoded(max(stop - start, 0), (partition_block(partition, stop, start),))


@lru_cache(maxsize=256)
def _few(partition: bytes, count: int) -> Encoded:
    return Encoded(count, (partition_block(partition, count),))


# ---- Metadata

#: The first version of each family.
_FIRSTS: Final = (0, 1, 5, 7, 8, 9, 10)


def family_version(version: int) -> int:
    """The first version that encodes topics as ``version`` does."""
    return max(each for each in _FIRSTS if each <= version)


def metadata_family(version: int, node_id: int, operations: int = NOT_REQUESTED) -> Family:
    """The family of a version, with the given authorized operations."""
    return _family(family_version(version), node_id, operations if version >= 8 else NOT_REQUESTED)


@lru_cache(maxsize=256)
def metadata_partitions(version: int, node_id: int, count: int) -> Numbered:
    """The partitions of a topic, for a field of that version."""
    return Numbered(count, partial(_encoded, _partition(version, node_id)))


@lru_cache(maxsize=64)
def _family(version: int, node_id: int, operations: int) -> Family:
    flexible = version >= 9
    partition = _partition(version, node_id)

    def tail(internal: bool, start: int, stop: int, of_topic: int | None) -> bytes:
        data = b"" if version < 1 else b"\1" if internal else b"\0"
        count = stop - start
        data += unsigned_varint(count + 1) if flexible else count.to_bytes(4, "big")
        data += partition_block(partition, stop, start)
        if version >= 8:
            data += (operations if of_topic is None else of_topic).to_bytes(4, "big", signed=True)
        return data + b"\0" if flexible else data

    layout = Layout(b"\0\0", flexible, version >= 10, tail)
    end = None if version < 8 else int(flexible)
    return Family(("metadata", version, node_id, operations), layout, end)


@lru_cache(maxsize=64)
def _partition(version: int, node_id: int) -> bytes:
    """The partition of number 0."""
    flexible = version >= 9
    node = node_id.to_bytes(4, "big", signed=True)
    one = (b"\x02" if flexible else b"\0\0\0\1") + node  # an array of the node alone
    data = bytes(6) + node
    if version >= 7:
        data += bytes(4)  # the epoch of its leader
    data += one + one
    if version >= 5:
        data += b"\x01" if flexible else bytes(4)  # nothing is offline
    return data + b"\0" if flexible else data


# ---- DescribeTopicPartitions


@lru_cache(maxsize=8)
def described_family(node_id: int) -> Family:
    """The family of the only version, with all operations."""
    return Family(("described", node_id), Layout(b"\0\0", True, True, partial(_described, node_id)), 1)


@lru_cache(maxsize=256)
def described_partitions(node_id: int, count: int) -> Numbered:
    """The partitions of a topic, for a field."""
    return Numbered(count, partial(_encoded, _described_partition(node_id)))


def _described(node_id: int, internal: bool, start: int, stop: int, operations: int | None) -> bytes:
    return b"".join(
        (
            b"\1" if internal else b"\0",
            unsigned_varint(max(stop - start, 0) + 1),
            partition_block(_described_partition(node_id), stop, start),
            (TOPIC_OPERATIONS if operations is None else operations).to_bytes(4, "big", signed=True),
            b"\0",
        )
    )


@lru_cache(maxsize=8)
def _described_partition(node_id: int) -> bytes:
    """The partition of number 0."""
    node = node_id.to_bytes(4, "big", signed=True)
    one, none = b"\x02" + node, b"\x01"
    return bytes(6) + node + bytes(4) + one + one + none + none + none + b"\0"


# ---- DescribeLogDirs: partitions whose logs are empty

#: The first version with variable lengths.
_FLEXIBLE: Final = 2
#: The number of a partition, the size of its log, the lag behind its end, and whether it is a future log.
_LOG: Final = bytes(4 + 8 + 8 + 1)


def log_dir_family(version: int) -> Family:
    """The family of a version."""
    compact = version >= _FLEXIBLE
    return Family(("log_dirs", compact), Layout(b"", compact, False, partial(_logs, compact)))


def _logs(compact: bool, _internal: bool, start: int, stop: int, _operations: int | None) -> bytes:
    if compact:
        block = partition_block(_LOG + b"\0", stop, start, at=0)
        return unsigned_varint(stop - start + 1) + block + b"\0"
    return (stop - start).to_bytes(4, "big") + partition_block(_LOG, stop, start, at=0)


# ---- answers that have little more than names: ListTopics (KIP-142) and ListConfigResources

_TOPIC: Final = bytes([ResourceType.TOPIC])


def _listed(internal: bool, _start: int, _stop: int, _operations: int | None) -> bytes:
    return b"\1" if internal else b"\0"


def _resource(_internal: bool, _start: int, _stop: int, _operations: int | None) -> bytes:
    return _TOPIC + b"\0"


#: The entries of ListTopics.
LISTED_FAMILY: Final = Family(("listed",), Layout(b"", False, False, _listed, by_partitions=False))
#: The topics of ListConfigResources.
RESOURCE_FAMILY: Final = Family(("resources",), Layout(b"", True, False, _resource, by_partitions=False))


def config_resource(name: str, kind: int) -> bytes:
    """One element of ListConfigResources' answers of another type."""
    data = name.encode()
    return unsigned_varint(len(data) + 1) + data + bytes((kind, 0))
