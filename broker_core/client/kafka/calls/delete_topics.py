"""Deleting topics by name or by id (DeleteTopics), at the controller."""

from __future__ import annotations

import uuid

from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.calls.answers_by_item import answered_rows, errors_by
from broker_core.client.kafka.calls.nodes import controller
from broker_core.client.kafka.results import Results
from broker_core.client.kafka.topic_collection import TopicIdCollection, TopicNameCollection
from broker_core.wire.kafka import DELETE_TOPICS, Fields

__all__ = ["delete_by_id", "delete_by_name"]

#: The first version with ids (KIP-516).
_WITH_IDS = 6


async def delete_by_name(attempts: Attempts, topics: TopicNameCollection) -> Results[str, None]:
    """Delete each topic by itself."""

    def request(names: list[str]) -> Fields:
        # Each version has one of the first two fields.
        return {
            "topics": [{"name": name} for name in names],
            "topic_names": names,
            "timeout_ms": attempts.timeout_ms,
        }

    read = errors_by("responses", "name")
    return Results(
        await answered_rows(attempts, topics.topic_names, controller, DELETE_TOPICS, request, read)
    )


async def delete_by_id(attempts: Attempts, topics: TopicIdCollection) -> Results[uuid.UUID, None]:
    """Delete each topic by itself. Another topic of the same name that was made meanwhile stays."""

    def request(ids: list[uuid.UUID]) -> Fields:
        return {"topics": [{"topic_id": each} for each in ids], "timeout_ms": attempts.timeout_ms}

    ids, read = topics.topic_ids, errors_by("responses", "topic_id")
    return Results(
        await answered_rows(attempts, ids, controller, DELETE_TOPICS, request, read, least=_WITH_IDS)
    )
