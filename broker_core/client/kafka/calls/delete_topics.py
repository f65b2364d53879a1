"""Deleting topics by name or by id (DeleteTopics), at the controller."""

from __future__ import annotations

import uuid

from broker_core.client.client_errors import ClientError
from broker_core.client.kafka.asking import Asking
from broker_core.client.kafka.calls.rows import answered_rows
from broker_core.client.kafka.kafka_errors import kafka_error
from broker_core.client.kafka.results import Results
from broker_core.client.kafka.topic_collection import TopicIdCollection, TopicNameCollection
from broker_core.wire.kafka import DELETE_TOPICS

__all__ = ["delete_by_id", "delete_by_name"]

#: The first version with ids (KIP-516).
_WITH_IDS = 6


async def delete_by_name(asking: Asking, topics: TopicNameCollection) -> Results[str, None]:
    """Delete each topic by itself."""

    async def ask(names: list[str]) -> dict[str, ClientError | None]:
        connection = await asking.cluster.controller()
        # Each version has one of the two fields.
        request = {
            "topics": [{"name": name} for name in names],
            "topic_names": names,
            "timeout_ms": asking.timeout_ms,
        }
        answer = await connection.ask(DELETE_TOPICS, request)
        return {
            row["name"]: kafka_error(row["error_code"], row["error_message"])
            for row in answer.value["responses"]
        }

    names = topics.topic_names
    return Results(await answered_rows(asking, names, ask) if names else {})


async def delete_by_id(asking: Asking, topics: TopicIdCollection) -> Results[uuid.UUID, None]:
    """Delete each topic by itself. Another topic of the same name that was made meanwhile stays."""

    async def ask(ids: list[uuid.UUID]) -> dict[uuid.UUID, ClientError | None]:
        connection = await asking.cluster.controller()
        request = {"topics": [{"topic_id": each} for each in ids], "timeout_ms": asking.timeout_ms}
        answer = await connection.ask(DELETE_TOPICS, request, least=_WITH_IDS)
        return {
            row["topic_id"]: kafka_error(row["error_code"], row["error_message"])
            for row in answer.value["responses"]
        }

    ids = topics.topic_ids
    return Results(await answered_rows(asking, ids, ask) if ids else {})
