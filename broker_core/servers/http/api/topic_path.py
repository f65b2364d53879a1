"""The topic in a path of the HTTP API: the parameter, its reading, and the path of a topic."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from broker_core.catalog import topic_in_namespace
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.names import PERSISTENT, TopicName
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import Parameter

__all__ = ["TOPIC", "TOPIC_PATH", "path_of", "topic_of"]

TOPIC_PATH: Final = "/v1/namespaces/{tenant}/{namespace}/topics/{topic}"
TOPIC: Final = Parameter(
    "topic",
    "The local name of a persistent topic, or the full name of any; percent-encoded, a `/` too. The name of a "
    "partition is about its topic, unless it is to be made, deleted or asked why.",
    within="path",
    example="orders",
)


def topic_of(request: ApiRequest) -> TopicName:
    """The topic of a request's path. Raises :exc:`~broker_core.errors.ListingFailed` with the cause ``NAME``."""
    try:
        return topic_in_namespace(request.namespace(), request.values[TOPIC.name])
    except InvalidName as error:
        raise ListingFailed(str(error), cause=Cause.NAME, reason="bad_namespace") from None


def path_of(topic: TopicName) -> str:
    """The path of a topic, the shortest one that clients leave as it is: they resolve ``.`` and ``..`` (RFC 3986)."""
    name = topic.local if topic.domain == PERSISTENT and topic.local not in {".", ".."} else str(topic)
    return f"/v1/namespaces/{topic.namespace}/topics/{quote(name, safe='')}"
