"""The topics of Metadata's answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from broker_core.wire.kafka.known_apis import NOT_ASKED
from broker_core.wire.kafka.topic_fragments.family import Family, Layout, partition_block
from broker_core.wire.kafka.writer import Encoded, Numbered, unsigned_varint

__all__ = ["family_version", "metadata_family", "metadata_partitions"]

#: The first version of each family.
_FIRSTS: Final = (0, 1, 5, 7, 8, 9, 10)
_FEW: Final = 32


def family_version(version: int) -> int:
    """The first version that encodes topics as ``version`` does."""
    return max(each for each in _FIRSTS if each <= version)


def metadata_family(version: int, node_id: int, operations: int = NOT_ASKED) -> Family:
    """The family of a version, for topics that the one node leads, with the given authorized operations."""
    return _family(family_version(version), node_id, operations if version >= 8 else NOT_ASKED)


def metadata_partitions(version: int, node_id: int, count: int) -> Numbered:
    """The partitions of a topic, for a field of that version."""
    return Numbered(count, _partitions(version, node_id))


@lru_cache(maxsize=64)
def _partitions(version: int, node_id: int) -> Callable[[int, int], Encoded]:
    def part(start: int, stop: int) -> Encoded:
        if not start and stop <= _FEW:
            return _few(version, node_id, stop)
        return Encoded(stop - start, (partition_block(_partition(version, node_id), stop, start),))

    return part


def _encoded(version: int, node_id: int, count: int) -> Encoded:
    return Encoded(count, (partition_block(_partition(version, node_id), count),))


#: Most topics have few partitions, which are encoded once.
_few: Final = lru_cache(maxsize=256)(_encoded)


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
