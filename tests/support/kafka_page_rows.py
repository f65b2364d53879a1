"""What a node of a cluster with groups, transactions, producers and reassignments would answer, for tests of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.servers.kafka.requests.paged_requests import with_pages
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    Api,
    Fields,
)

__all__ = ["ClusterRows"]


@dataclass
class ClusterRows:
    """Groups with their members, transactions with their producers, and the producers and reassignments of partitions.

    What is asked for by name is answered as often as it was asked for, and what is not there with an error (4.3.1).
    """

    groups: dict[str, list[str]] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    producers: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    reassigned: dict[str, list[int]] = field(default_factory=dict)

    def handlers(self) -> dict[int, HandlerRow]:
        """By the keys of their APIs."""
        found: Final[dict[Api, Callable[[KafkaCall], Fields]]] = {
            LIST_GROUPS: lambda _: {"groups": [{"group_id": each} for each in self.groups]},
            DESCRIBE_GROUPS: lambda call: {"groups": list(map(self._group, call.body["groups"]))},
            CONSUMER_GROUP_DESCRIBE: lambda call: {"groups": list(map(self._group, call.body["group_ids"]))},
            LIST_TRANSACTIONS: lambda _: {
                "transaction_states": [
                    {"transactional_id": name, "producer_id": number}
                    for name, number in self.transactions.items()
                ]
            },
            DESCRIBE_TRANSACTIONS: lambda call: {
                "transaction_states": list(map(self._transaction, call.body["transactional_ids"]))
            },
            DESCRIBE_PRODUCERS: self._producers,
            LIST_PARTITION_REASSIGNMENTS: self._reassignments,
        }
        return {api.key: with_pages(_row(api, answer)) for api, answer in found.items()}

    def _group(self, name: str) -> Fields:
        if name not in self.groups:
            return {"group_id": name, "error_code": 69}
        return {"group_id": name, "members": [{"member_id": each} for each in self.groups[name]]}

    def _transaction(self, name: str) -> Fields:
        number = self.transactions.get(name)
        return {
            "transactional_id": name,
            "producer_id": number or 0,
            "error_code": 105 if number is None else 0,
        }

    def _producers(self, call: KafkaCall) -> Fields:
        def partition(topic: str, index: int) -> Fields:
            found = self.producers.get((topic, index))
            if found is None:
                return {"partition_index": index, "error_code": 3}
            return {"partition_index": index, "active_producers": [{"producer_id": each} for each in found]}

        return {
            "topics": [
                {
                    "name": row["name"],
                    "partitions": [partition(row["name"], index) for index in row["partition_indexes"]],
                }
                for row in call.body["topics"]
            ]
        }

    def _reassignments(self, call: KafkaCall) -> Fields:
        asked = call.body["topics"]
        wanted: Iterable[tuple[str, list[int]]] = self.reassigned.items()
        if asked is not None:
            wanted = (
                (
                    row["name"],
                    [
                        index
                        for index in row["partition_indexes"]
                        if index in self.reassigned.get(row["name"], ())
                    ],
                )
                for row in asked
            )
        return {
            "topics": [
                {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
                for name, indexes in wanted
                if indexes
            ]
        }


def _row(api: Api, answer: Callable[[KafkaCall], Fields]) -> HandlerRow:
    async def later(call: KafkaCall) -> Fields:
        return answer(call)

    return HandlerRow(api, later)
