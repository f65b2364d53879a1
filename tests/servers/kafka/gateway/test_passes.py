from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.broker import Broker
from broker_core.upstream.kafka import KafkaCluster
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    CREATE_TOPICS,
    LIST_GROUPS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    Api,
    Fields,
)
from tests.support.kafka_gateway import gateway, play, small_cluster
from tests.support.kafka_page_rows import ClusterRows
from tests.support.kafka_serving import raw_client

GROUPS = [f"g{number:02}" for number in range(30)]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> ClusterRows:
    """What the cluster has besides topics."""
    rows = ClusterRows(
        {name: [f"m{each}" for each in range(number % 4)] for number, name in enumerate(GROUPS)},
        dict.fromkeys(GROUPS, 5),
        reassigned={"mail": [0], "orders": [0, 1, 2]},
    )
    play(rows, monkeypatch)
    return rows


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[Api]:
    """How often the cluster was asked by each API."""
    counts: Counter[Api] = Counter()
    request = KafkaCluster.request

    async def counting(self: KafkaCluster, target: Any, api: Api, *rest: Any, **more: Any) -> Fields:
        counts[api] += 1
        return await request(self, target, api, *rest, **more)

    monkeypatch.setattr(KafkaCluster, "request", counting)
    return counts


@pytest.fixture
async def front(tmp_path: Path, rows: ClusterRows) -> AsyncIterator[Broker]:
    async with small_cluster(tmp_path) as cluster, gateway(tmp_path, cluster.address, max_age=60) as broker:
        yield broker


async def _pages(broker: Broker, api: Api, version: int, limit: int, **body: Any) -> list[Fields]:
    assert broker.kafka_address is not None
    pages: list[Fields] = []
    cursor = None
    async with raw_client(broker.kafka_address) as client:
        while not pages or cursor is not None:
            asked = {**body, "response_pagination_limit": limit, "cursor": cursor}
            pages.append(await client.ask(api, version, asked))
            cursor = pages[-1]["next_cursor"]
    return pages


@pytest.mark.parametrize(
    ("api", "version", "array", "units"),
    [
        (LIST_GROUPS, 5, "groups", 30),
        (LIST_TRANSACTIONS, 2, "transaction_states", 30),
        (LIST_PARTITION_REASSIGNMENTS, 0, "topics", 4),
    ],
    ids=lambda each: each.name if isinstance(each, Api) else "",
)
async def test_a_pass_costs_the_cluster_one_listing(
    front: Broker, asked: Counter[Api], api: Api, version: int, array: str, units: int
) -> None:
    body = {} if api is not LIST_PARTITION_REASSIGNMENTS else {"topics": None}
    whole = await _pages(front, api, version, 2000, **body)
    asked.clear()
    pages: list[Fields] = []
    for passes in (1, 2):
        pages = await _pages(front, api, version, 3, **body)
        assert len(pages) == -(-units // 3)
        assert asked[api] == passes
    assert _flat(pages, array) == _flat(whole, array)


def _flat(pages: list[Fields], array: str) -> list[str]:
    rows = [row for page in pages for row in page[array]]
    return [f"{row.get('name')} {each}" for row in rows for each in row.get("partitions") or [row]]


async def test_the_page_behind_a_change_through_the_gateway_asks_again(
    front: Broker, asked: Counter[Api], rows: ClusterRows
) -> None:
    assert front.kafka_address is not None
    async with raw_client(front.kafka_address) as client:
        page = {"response_pagination_limit": 3}
        cursor = (await client.ask(LIST_GROUPS, 5, page))["next_cursor"]
        assert cursor == {"group_id": "g03"}
        del rows.groups["g03"]
        await client.ask(CREATE_TOPICS, 7, {"topics": [{"name": "new", "num_partitions": 1}]})
        found = await client.ask(LIST_GROUPS, 5, page | {"cursor": cursor})
        assert [row["group_id"] for row in found["groups"]] == ["g04", "g05", "g06"]
        # A pass that goes on is made of that answer.
        found = await client.ask(LIST_GROUPS, 5, page | {"cursor": found["next_cursor"]})
        assert found["groups"][0]["group_id"] == "g07"
        assert asked[LIST_GROUPS] == 2


@pytest.mark.parametrize("limit", [1, 2, 7, 2000])
async def test_members_of_consumer_groups_are_on_pages(front: Broker, limit: int) -> None:
    names = [*reversed(GROUPS), "none", GROUPS[3]]
    [whole] = await _pages(front, CONSUMER_GROUP_DESCRIBE, 1, 2000, group_ids=names)
    pages = await _pages(front, CONSUMER_GROUP_DESCRIBE, 1, limit, group_ids=names)

    def units(*answers: Fields) -> list[tuple[str, int, str]]:
        return sorted(
            (row["group_id"], row["error_code"], member.get("member_id", ""))
            for answer in answers
            for row in answer["groups"]
            for member in row["members"] or [{}]
        )

    assert units(*pages) == units(whole)
    assert [row for row in units(whole) if row[1]] == [("none", 69, "")]
