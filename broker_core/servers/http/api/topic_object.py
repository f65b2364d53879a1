"""One topic of the catalogue as a JSON object of the HTTP API."""

from __future__ import annotations

from typing import Any, Final

from broker_core.catalog import TopicRecord, topic_id_text
from broker_core.change_log import CatalogVersion
from broker_core.servers.http.api.operation import Schema
from broker_core.servers.http.api.version_text import version_text

__all__ = ["TOPIC_EXAMPLE", "TOPIC_SCHEMA", "topic_object"]

TOPIC_SCHEMA: Final[Schema] = {
    "type": "object",
    "required": ["name", "partitions", "topic_id", "properties", "created", "version"],
    "properties": {
        "name": {"type": "string", "description": "The full name, without a partition."},
        "partitions": {"type": "integer", "minimum": 0, "description": "0: a topic without any."},
        "topic_id": {"type": "string", "description": "As Kafka prints ids (KIP-516)."},
        "properties": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Those of the topic.",
        },
        "created": {"type": "string", "format": "date-time", "description": "In UTC."},
        "version": {"type": "string", "description": "Of the namespace, for `since=` of its changes."},
    },
}
TOPIC_EXAMPLE: Final = {
    "name": "persistent://public/default/orders",
    "partitions": 2,
    "topic_id": "pLW3lPqvQYyE8maO_j3eRw",
    "properties": {"region": "eu"},
    "created": "2026-11-22T18:49:05.694+00:00",
    "version": "A1sqh0DGTTO5k7Gf3O4HIA:3.a3eedc6b04209c5daba6f027",
}


def topic_object(topic: TopicRecord, version: CatalogVersion) -> dict[str, Any]:
    """The values of :data:`TOPIC_SCHEMA`."""
    return {
        "name": str(topic.name),
        "partitions": topic.partitions,
        "topic_id": topic_id_text(topic.topic_id),
        "properties": dict(topic.properties),
        "created": topic.created.isoformat(timespec="milliseconds"),
        "version": version_text(version),
    }
