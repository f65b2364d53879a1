"""The topics of answers that have little more than names: ListTopics (KIP-142) and ListConfigResources."""

from __future__ import annotations

from typing import Final

from broker_core.kafka.acls import ResourceType
from broker_core.wire.kafka.topic_fragments.family import Family, Layout
from broker_core.wire.kafka.writer import unsigned_varint

__all__ = ["LISTED_FAMILY", "RESOURCE_FAMILY", "config_resource"]

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
