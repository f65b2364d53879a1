"""One topic of the catalogue as a JSON object of the HTTP API."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field, create_model

from broker_core.catalog import TopicRecord
from broker_core.change_log import CatalogVersion
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.service import version_text

__all__ = ["TOPIC_EXAMPLE", "TOPIC_ID_PATTERN", "ShownTopic", "TopicObject", "WrittenTopic"]

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
    properties: dict[str, str] = Field(description="Those of the topic.")
    configs: dict[str, str] = Field(description="The configs of Kafka that were set for the topic.")
    replication: int | None = Field(
        description="The replicas that a Kafka client asked for; null for no number."
    )
    created: str = Field(description="In UTC.", json_schema_extra={"format": "date-time"})
    version: str = Field(description="Of the namespace, for `since=` of its changes.")

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
