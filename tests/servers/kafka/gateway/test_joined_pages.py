"""The pages of each of the thirteen requests, joined: through a gateway they are the cluster's own answer."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from broker_core.broker import Broker
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_FETCH,
    Api,
    Fields,
)
from tests.support.kafka_gateway import Secrets, gateway, play, small_cluster
from tests.support.kafka_page_rows import ClusterRows
from tests.support.kafka_page_units import Unit, in_order, units_of
from tests.support.kafka_serving import raw_client
from tests.support.ports import free_port

GROUPS: Final = [f"g{number:02}" for number in range(30)]
INDEXES: Final = [0, 1, 2]


def _address(broker: Broker) -> tuple[str, int]:
    assert broker.kafka_address is not None
    return broker.kafka_address


def _parts(key: str, array: str, one: Callable[[int], Any]) -> list[Fields]:
    """Three partitions of each topic of the cluster, and of one that it has not."""
    return [{key: name, array: [one(each) for each in INDEXES]} for name in ("none", "orders", "mail")]


#: Each of the thirteen requests, of all there is or of what has many rows.
EVERY: Final[dict[str, tuple[Api, int, Fields]]] = {
    "topics": (METADATA, 13, {"topics": None}),
    "topics 9": (METADATA, 9, {"topics": None}),
    "named": (METADATA, 12, {"topics": [{"name": name} for name in ("orders", "none", "mail")]}),
    "offsets": (
        LIST_OFFSETS,
        8,
        {"topics": _parts("name", "partitions", lambda each: {"partition_index": each, "timestamp": -1})},
    ),
    "reassignments": (LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}),
    "logs": (DESCRIBE_LOG_DIRS, 5, {"topics": None}),
    "named logs": (DESCRIBE_LOG_DIRS, 2, {"topics": _parts("topic", "partitions", int)}),
    "committed": (
        OFFSET_FETCH,
        9,
        {"groups": [{"group_id": each, "topics": _parts("name", "partition_indexes", int)} for each in "gh"]},
    ),
    "committed of none": (  # rows without a name, in the order of the ids
        OFFSET_FETCH,
        10,
        {
            "groups": [
                {
                    "group_id": group,
                    "topics": [
                        {"topic_id": uuid.UUID(int=(each << 120) + 1), "partition_indexes": [0]}
                        for each in ids
                    ],
                }
                for group, ids in (("g", (1, 5)), ("h", (2, 3, 7)))
            ]
        },
    ),
    "committed 6": (
        OFFSET_FETCH,
        6,
        {"group_id": "g", "topics": _parts("name", "partition_indexes", int)},
    ),
    "producers": (DESCRIBE_PRODUCERS, 0, {"topics": _parts("name", "partition_indexes", int)}),
    "transactions": (LIST_TRANSACTIONS, 2, {}),
    "named transactions": (DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [*GROUPS, "none"]}),
    "groups": (LIST_GROUPS, 5, {}),
    "members": (DESCRIBE_GROUPS, 6, {"groups": [*GROUPS, "none"]}),
    "consumers": (CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [*GROUPS, "none"]}),
    "acls": (
        DESCRIBE_ACLS,
        3,
        dict.fromkeys(("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), 1),
    ),
    "configs": (
        DESCRIBE_CONFIGS,
        4,
        {"resources": [{"resource_type": 2, "resource_name": name} for name in ("orders", "none", "mail")]},
    ),
}


@pytest.mark.parametrize("is_hiding", [False, True])
async def test_joined_pages_of_each_request_are_the_clusters_own_answer(
    tmp_path: Path, is_hiding: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what a mask hides: nothing of it is requested by name, and it is there if everything is."""
    rows = ClusterRows(
        {name: [f"m{each}" for each in range(number % 4)] for number, name in enumerate(GROUPS)},
        dict.fromkeys(GROUPS, 5),
        {("orders", 0): [3, 2**62, 5], ("orders", 1): [], ("mail", 0): [*range(9)]},
        {"mail": [0], "orders": [0, 1, 2]},
    )
    play(rows, monkeypatch)
    # What there is not, a gateway that hides something does not ask for: its own row says so in other words.
    unsaid, hidden = (["none"], ["secret.keys"]) if is_hiding else ([], [])

    def seen(units: list[Unit], *without: str) -> list[Unit]:
        names = {name.encode("utf-16-be") for name in (*unsaid, *without)}
        return in_order([unit for unit in units if names.isdisjoint(unit[0])])

    port = free_port()
    async with (
        small_cluster(tmp_path) as cluster,
        gateway(
            tmp_path,
            cluster.address,
            {"secrets": Secrets()} if is_hiding else {},
            max_age=60,
            ports=str(port),
        ),
        raw_client(("127.0.0.1", port)) as client,
        raw_client(_address(cluster.broker)) as direct,
    ):
        ids = {row.name: row.topic_id for row in await cluster.list_topics()}
        for case, (api, version, body) in EVERY.items():
            # Requests without tags are answered as the cluster answers them.
            plain, whole = [await each.ask(api, version, body) for each in (client, direct)]
            wanted = seen(units_of(api, body, whole, ids), *hidden)
            assert seen(units_of(api, body, plain, ids)) == wanted, case
            for limit in (1, 7, 2000):
                found: list[Unit] = []
                cursor, count = None, 0
                while count == 0 or cursor is not None:
                    asked = {**body, "response_pagination_limit": limit, "cursor": cursor}
                    page = await client.ask(api, version, asked)
                    following = page["next_cursor"]
                    units = units_of(api, body, page, ids)
                    full = len({key for key, _ in units})
                    assert full == limit or (following is None and full <= limit), (case, limit)
                    found, cursor, count = found + units, following, count + 1
                assert seen(found) == wanted, (case, limit)
            wrong = await client.ask(api, version, {**body, "response_pagination_limit": -1})
            assert "'error_code': 42" in str(wrong), case
