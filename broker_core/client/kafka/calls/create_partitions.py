"""Adding partitions to topics (CreatePartitions), at the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.calls.answers_by_item import answered_rows, errors_by
from broker_core.client.kafka.calls.nodes import controller
from broker_core.client.kafka.results import Results
from broker_core.client.kafka.topics import NewPartitions
from broker_core.wire.kafka import CREATE_PARTITIONS, Fields

__all__ = ["create_partitions"]


async def create_partitions(
    attempts: Attempts, partitions: Mapping[str, NewPartitions | int], *, validate_only: bool
) -> Results[str, None]:
    """Add partitions to each topic by itself; a number is the total of its partitions."""
    given = {
        name: wanted if isinstance(wanted, NewPartitions) else NewPartitions(wanted)
        for name, wanted in partitions.items()
    }

    def request(names: list[str]) -> Fields:
        return {
            "topics": [_topic_row(name, given[name]) for name in names],
            "timeout_ms": attempts.timeout_ms,
            "validate_only": validate_only,
        }

    read = errors_by("results", "name")
    return Results(await answered_rows(attempts, given, controller, CREATE_PARTITIONS, request, read))


def _topic_row(name: str, wanted: NewPartitions) -> dict[str, Any]:
    assignments = wanted.assignments
    return {
        "name": name,
        "count": wanted.total_count,
        "assignments": None
        if assignments is None
        else [{"broker_ids": list(nodes)} for nodes in assignments],
    }
