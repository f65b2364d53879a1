"""One topic of the catalogue as a JSON object of the HTTP API."""

from __future__ import annotations

from typing import Any, Final

from broker_core.catalog import TopicRecord, topic_id_text
from broker_core.change_log import CatalogVersion
from broker_core.servers.http.api.operation import Schema
from broker_core.service import version_text

__all__ = ["TOPIC_EXAMPLE", "TOPIC_ID_PATTERN", "TOPIC_SCHEMA", "topic_object"]

#: The ids that are taken: base64, and hexadecimal with or without hyphens.
TOPIC_ID_PATTERN: Final = (
    "^([A-Za-z0-9_+/-]{22}(==)?|[0-9A-Fa-f]{32}"
    "|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})$"
)

TOPIC_SCHEMA: Final[Schema] = {
    "type": "object",
    "required": [
        "name",
        "partitions",
        "topic_id",
        "properties",
        "configs",
        "replication",
        "created",
        "version",
    ],
    "properties": {
        "name": {"type": "string", "description": "The full name, without a partition."},
        "partitions": {"type": "integer", "minimum": 0, "description": "0: a topic without any."},
        "topic_id": {"type": "string", "description": "22 characters of base64 (KIP-516)."},
        "properties": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Those of the topic.",
        },
        "configs": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "The configs of Kafka that were set for the topic.",
        },
        "replication": {
            "type": ["integer", "null"],
            "description": "The replicas that a Kafka client asked for; null for no number.",
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
    "configs": {"cleanup.policy": "compact"},
    "replication": None,
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
        "configs": dict(topic.configs),
        "replication": topic.replication,
        "created": topic.created.isoformat(timespec="milliseconds"),
        "version": version_text(version),
    }
