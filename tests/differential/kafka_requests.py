"""Random requests of Kafka clients, made field by field from the tables of the APIs."""

from __future__ import annotations

from typing import Any, Final

from broker_core.wire.kafka import APIS, Api, request_frame
from broker_core.wire.kafka.fields import Array, Field, Kind, Struct, Versions
from tests.differential.drawing import Draw

__all__ = ["KAFKA_WEIGHTS", "kafka_frame", "kafka_request"]

#: How often each API is asked; those that are not named, once.
_OFTEN: Final = {
    "Metadata": 12,
    "CreateTopics": 10,
    "DeleteTopics": 6,
    "CreatePartitions": 6,
    "DescribeConfigs": 5,
    "IncrementalAlterConfigs": 5,
    "AlterConfigs": 4,
    "DescribeTopicPartitions": 4,
    "ListTopics": 3,
    "CreateAcls": 3,
    "DescribeAcls": 2,
    "DeleteAcls": 1,
    "ListOffsets": 2,
}
#: A connection of its own begins with these.
_NEVER: Final = {"SaslHandshake", "SaslAuthenticate"}
KAFKA_WEIGHTS: Final = {api: _OFTEN.get(api.name, 1) for api in APIS.values() if api.name not in _NEVER}

_TEXTS: Final = {
    "principal": ("User:ann", "User:bob", "User:nobody", "User:*", "ann", ""),
    "host": ("*", "127.0.0.1", "10.0.0.1", ""),
    "replica_directory_id": ("",),
}
#: Numbers by the name of their field, or the end of it.
_NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    "resource_type": (2, 2, 2, 2, 4, 3, 1, 0, 32),
    "resource_types": (2, 4, 8, 16),
    "pattern_type": (3, 3, 4, 1, 2),
    "operation": (2, 3, 5, 6, 7, 8, 10, 11, 1, 0, 99),
    "config_operation": (0, 0, 1, 2, 3, 9),
    "permission_type": (3, 3, 2, 1, 0),
    "timeout_ms": (30_000,),
    "max_wait_ms": (0,),
    "acks": (1, -1),
    "replication_factor": (-1, 1, 1, 3, 0),
    "partition_index": (0, 0, 1, 5, -1),
    "response_partition_limit": (2000, 3, 1, 0, -1),
    "timestamp": (-1, -2, 0),
    "endpoint_type": (1, 1, 2),
}


def kafka_request(draw: Draw) -> tuple[Api, int]:
    """An API and one of its versions, later ones more often."""
    api = draw.random.choices(list(KAFKA_WEIGHTS), list(KAFKA_WEIGHTS.values()))[0]
    versions = range(api.versions.first, api.versions.last + 1)
    return api, versions[-1 - int(len(versions) * draw.random.random() ** 2)]


def kafka_frame(draw: Draw, api: Api, version: int, number: int, client: str) -> tuple[bytes, str]:
    """A request, and its words."""
    value = _struct(draw, api.request, version, ())
    if api.name == "Produce" and value["acks"] == 0:
        value["acks"] = 1
    if api.name == "CreatePartitions" and len(value["topics"]) > 1:
        # Too many for one topic are too many for the others, of the same topics: those of a listing were others before.
        value["topics"] = [row | {"count": min(row["count"], 100)} for row in value["topics"]]
    return request_frame(api, version, number, client, value), f"{api.name} v{version} {value}"


def _struct(draw: Draw, struct: Struct, version: int, path: tuple[str, ...]) -> dict[str, Any]:
    return {
        each.name: _field(draw, each, version, path)
        for each in struct.fields
        if version in Versions.parse(each.versions)
    }


def _field(draw: Draw, each: Field, version: int, path: tuple[str, ...]) -> Any:
    if version in Versions.parse(each.nullable):
        # A null name goes with an id, and the other way round.
        null = {"topics": 0.3, "name": 0.4 if version >= 6 else 0.0, "cursor": 0.8, "assignments": 1.0}.get(
            each.name, 0.25
        )
        if draw.chance(null):
            return None
    here = (*path, each.name)
    if isinstance(each.kind, Array):
        most = 4 if each.name in {"topics", "topic_names", "resources"} else 2
        if each.name in {"assignments", "broker_ids"}:
            most = 1 if draw.chance(0.1) else 0
        return [_value(draw, each.kind.of, version, here) for _ in range(draw.random.randrange(most + 1))]
    return _value(draw, each.kind, version, here)


def _value(draw: Draw, kind: Kind, version: int, path: tuple[str, ...]) -> Any:
    if isinstance(kind, Struct):
        return _struct(draw, kind, version, path)
    name = path[-1]
    if isinstance(kind, Array):
        return []
    match getattr(kind, "name", ""):
        case "boolean":
            return draw.chance(0.3)
        case "bytes":
            return b"x"
        case "topic_id":
            return draw.topic_id()
        case "float64":
            return 0.0
        case "string":
            return _text(draw, name, path)
    for end, numbers in _NUMBERS.items():
        if name == end or name.removesuffix("_filter").endswith(end):
            return draw.of(numbers)
    return draw.number() if "partitions" in name or name == "count" else draw.of((0, 1, -1))


def _text(draw: Draw, name: str, path: tuple[str, ...]) -> str:
    for end, texts in _TEXTS.items():
        if name.removesuffix("_filter").endswith(end):
            return draw.of(texts)
    if "configs" in path or "configuration_keys" in path:
        configs = draw.configs() or {"retention.ms": "1"}
        key = draw.of(sorted(configs))
        return key if name in {"name", "configuration_keys"} else configs[key] or ""
    if name.startswith("resource_name") and draw.chance(0.3):
        return draw.of(("kafka-cluster", "1", "", "*", "new-"))
    if name in {
        "rack_id",
        "cluster_id",
        "transactional_id",
        "client_software_version",
        "client_software_name",
    }:
        return draw.of(("x", "é", ""))
    return draw.local_name()
