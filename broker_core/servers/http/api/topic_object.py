"""One topic in the HTTP API: its path, and the JSON object of a topic of the catalogue."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from pydantic import Field, create_model

from broker_core.catalog import TopicRecord
from broker_core.change_log import CatalogVersion, version_text
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.names import PERSISTENT, TopicName, topic_in_namespace
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.operation import Parameter

__all__ = [
    "TOPIC",
    "TOPIC_EXAMPLE",
    "TOPIC_ID_PATTERN",
    "TOPIC_PATH",
    "ShownTopic",
    "TopicObject",
    "WrittenTopic",
    "path_of",
    "topic_of",
]

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


#: The ids that are taken: base64, and hexadecimal with or without hyphens.
TOPIC_ID_PATTERN: Final = (
    "^([A-Za-z0-9_+/-]{22}(==)?|[0-9A-Fa-f]{32}"
    "|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})$"
)
TOPIC_EXAMPLE: Final = {
    "name": "persistent://public/default/orders",
    "partitions": 2,
    "topic_id": "pLW3lPqvQYyE8maO_j3eRw",
    "properties": {"region": "eu"},
    "configs": {"cleanup.policy": "compact"},
    "replication": None,
    "created": "2026-11-22T18:49:05.694+00:00",
    "version": "A1sqh0DGTTO5k7Gf3O4HIA:3.a3eedc6b04209c5daba6f027",
}


class TopicObject(JsonObject):
    """A topic of the catalogue."""

    name: str = Field(description="The full name, without a partition.")
    partitions: int = Field(ge=0, description="0: a topic without any.")
    topic_id: str = Field(description="22 characters of base64 (KIP-516).")
    properties: dict[str, str] = Field(description="The properties of the topic.")
    configs: dict[str, str] = Field(description="The configs of Kafka that were set for the topic.")
    replication: int | None = Field(
        description="The replicas that a Kafka client asked for; null for no number."
    )
    created: str = Field(description="In UTC.", json_schema_extra={"format": "date-time"})
    version: str = Field(description="The version of the namespace, for `since=` of its changes.")

    @classmethod
    def of(cls, topic: TopicRecord, version: CatalogVersion) -> TopicObject:
        """A topic as it was at a version."""
        return cls(**topic.shown(), version=version_text(version))


def _or_null(name: str) -> Any:
    field = TopicObject.model_fields[name]
    return (field.annotation or Any) | None, field


def _with_nulls(title: str, text: str, *names: str) -> type[TopicObject]:
    return create_model(title, __base__=TopicObject, __doc__=text, **{name: _or_null(name) for name in names})


#: A topic of the catalogue, of a plugin or of brokers: only the catalogue knows all of it for sure.
ShownTopic: Final = _with_nulls(
    "ShownTopic", "A null is not known here.", "topic_id", "properties", "configs", "created", "version"
)
#: A changed topic: only its name for a client that may not list it.
WrittenTopic: Final = _with_nulls(
    "WrittenTopic",
    "All but the name is null for a client that may not list the topic.",
    "partitions",
    "topic_id",
    "properties",
    "configs",
    "created",
    "version",
)
