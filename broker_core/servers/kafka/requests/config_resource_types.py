"""The kinds of Kafka's config resources: topics, the broker, and kinds without stored configs."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from broker_core.kafka.acls import CLUSTER_NAME, Operation, ResourceType
from broker_core.servers.kafka.requests.call import KafkaCall
from broker_core.servers.kafka.row_error import RowError, error_row
from broker_core.wire.kafka import ErrorCode

__all__ = ["ConfigResourceType", "broker_id", "is_known", "not_this_broker", "unauthorized"]

_INTEGER: Final = re.compile(r"[+-]?\d{1,10}")


class ConfigResourceType(IntEnum):
    """The type of a resource, by its number in requests."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def is_known(kind: int) -> bool:
    """Whether there is such a type."""
    return kind in list(ConfigResourceType)


def broker_id(name: str) -> int | None:
    """The id that is the name of a broker, of 32 bits as Java reads it; ``None`` for another name."""
    if _INTEGER.fullmatch(name) is None or not -(2**31) <= int(name) < 2**31:
        return None
    return int(name)


def not_this_broker(name: str, node_id: int, *, is_called: str, instead_of: str) -> RowError | None:
    """The error of a broker's name; both texts differ by API in Kafka."""
    number = broker_id(name)
    if number is None:
        return RowError(ErrorCode.INVALID_REQUEST, f"{is_called} id must be an integer, but it is: {name}")
    if number != node_id:
        text = f"Unexpected broker id, expected {node_id}{instead_of} but received {name}"
        return RowError(ErrorCode.INVALID_REQUEST, text)
    return None


def unauthorized(call: KafkaCall, kind: int, name: str, operation: Operation) -> RowError | None:
    """The error of a client that may not do this with the configs of a resource that is no topic."""
    if kind == ConfigResourceType.GROUP:
        allowed = call.services.authorizer.allows(call, operation, ResourceType.GROUP, name)
        return None if allowed else error_row(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    allowed = call.services.authorizer.allows(call, operation, ResourceType.CLUSTER, CLUSTER_NAME)
    return None if allowed else error_row(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
