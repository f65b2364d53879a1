from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from broker_core.broker import Broker
from broker_core.client.kafka import AdminClient, NewTopic
from broker_core.servers.kafka.pages.page_shapes import PageShape
from broker_core.servers.kafka.pages.raw_units import RawUnits
from broker_core.servers.kafka.requests import page_parts
from broker_core.servers.kafka.topics.named_topics import NamedTopic, NamedTopics
from broker_core.upstream.kafka import KafkaCluster
from broker_core.wire.kafka import (
    CREATE_TOPICS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_FETCH,
    Api,
    Fields,
    RawRows,
    Reader,
)
from tests.support.kafka_gateway import Secrets, address_of, gateway, play, small_cluster
from tests.support.kafka_page_rows import ClusterRows
from tests.support.kafka_serving import raw_client
from tests.support.ports import free_port

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


async def test_a_page_behind_a_mask_is_decided_by_its_topics(
    tmp_path: Path, rows: ClusterRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided: list[int] = []
    by_name = NamedTopics.by_name

    async def noting(self: NamedTopics, call: Any, names: Any, **more: Any) -> list[NamedTopic]:
        decided.append(len(names))
        return await by_name(self, call, names, **more)

    monkeypatch.setattr(NamedTopics, "by_name", noting)
    made = [NewTopic(f"t{number:02}") for number in range(60)]
    async with (
        small_cluster(tmp_path) as cluster,
        gateway(tmp_path, cluster.address, {"secrets": Secrets()}, max_age=60) as front,
        AdminClient(address_of(front)) as client,
    ):
        (await cluster.create_topics(made)).all()
        (node,) = (await client.describe_cluster()).nodes
        names: list[str] = []
        page: Fields = {"topics": None, "response_pagination_limit": 4}
        async with raw_client((node.host, node.port)) as at_node:
            while True:
                decided.clear()
                found = await at_node.ask(DESCRIBE_LOG_DIRS, 5, page)
                shown = [topic["name"] for row in found["results"] for topic in row["topics"]]
                names += shown
                if shown[0] > "t":
                    assert sum(decided) < 20, shown
                if found["next_cursor"] is None:
                    break
                page = {**page, "cursor": found["next_cursor"]}
        assert sorted(set(names)) == ["mail", "orders", *(each.name for each in made)]


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


async def test_a_large_request_is_read_once_for_all_its_pages(
    front: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of it is for requests of the same bytes over the same connection, under permits."""
    assert front.kafka_address is not None
    assert front._core is not None
    assert front._core.kafka is not None
    kept = front._core.kafka.front.requests
    looked_at: list[int] = []
    of = RawUnits.of

    def counting(shape: PageShape, rows: RawRows) -> RawUnits | None:
        looked_at.append(len(rows))
        return of(shape, rows)

    skips: list[int] = []
    skip = RawRows.skip

    def skipping(rows: RawRows, reader: Reader) -> None:
        skips.append(threading.get_ident())
        skip(rows, reader)

    monkeypatch.setattr(RawUnits, "of", counting)
    monkeypatch.setattr(RawRows, "skip", skipping)
    names = [*GROUPS, *(f"none-{number:04}" for number in range(300))]
    others = [*GROUPS[:-1], "g30", *names[len(GROUPS) :]]
    found: dict[str, list[tuple[str, int]]] = {}
    async with raw_client(front.kafka_address) as client, raw_client(front.kafka_address) as other:
        for asker, asked, reads in ((client, names, 1), (client, others, 1), (other, others, 1)):
            looked_at.clear()
            cursor = None
            rows: list[tuple[str, int]] = []
            while not rows or cursor is not None:
                page = {"groups": asked, "response_pagination_limit": 100, "cursor": cursor}
                answer = await asker.ask(DESCRIBE_GROUPS, 5, page)
                cursor = answer["next_cursor"]
                rows += [(row["group_id"], len(row["members"])) for row in answer["groups"]]
            assert looked_at.count(len(names)) == reads
            found[str(asked)] = rows
    assert {*skips} == {threading.get_ident()}  # in no thread of its own
    assert [name for name, _ in found[str(names)]] == sorted(names)
    assert [name for name, _ in found[str(others)]] == sorted(others)
    before = front._core.pipeline.permits.snapshots.acquired
    kept.clear()
    assert front._core.pipeline.permits.snapshots.acquired <= before - 2 * 2 * len(names)


#: Groups of which most are none, and a page of them.
MANY = [*GROUPS, *(f"none-{number:04}" for number in range(300))]
SOME: Fields = {"groups": MANY, "response_pagination_limit": 60}


async def test_a_pass_that_goes_on_costs_the_cluster_one_more_question(
    front: Broker, asked: Counter[Api], rows: ClusterRows
) -> None:
    """The first page is asked for alone. What comes for the pages behind the second is for that pass alone."""
    assert front.kafka_address is not None
    assert front._core is not None
    assert front._core.kafka is not None
    front._core.kafka.front.aheads.max_age = 60  # however busy the machine is
    async with raw_client(front.kafka_address) as client, raw_client(front.kafka_address) as other:
        whole = await client.ask(DESCRIBE_GROUPS, 5, {"groups": MANY})

        async def page(asker: Any, cursor: Fields | None, **more: Any) -> tuple[Fields, int]:
            before = asked[DESCRIBE_GROUPS]
            answer = await asker.ask(DESCRIBE_GROUPS, 5, {**SOME, "cursor": cursor, **more})
            return answer, asked[DESCRIBE_GROUPS] - before

        async def second(asker: Any) -> tuple[Fields, list[Fields]]:
            begun, _ = await page(asker, None)
            found, questions = await page(asker, begun["next_cursor"])
            assert questions == 1
            return found["next_cursor"], [begun, found]

        cursor, pages = await second(client)
        behind: list[int] = []
        while cursor is not None:
            answer, questions = await page(client, cursor)
            cursor = answer["next_cursor"]
            pages.append(answer)
            behind.append(questions)
        assert len(behind) > 3
        assert not any(behind)
        found = [
            (row["group_id"], member) for each in pages for row in each["groups"] for member in row["members"]
        ]
        rest = [(row["group_id"], member) for row in whole["groups"] for member in row["members"]]
        assert sorted(map(str, found)) == sorted(map(str, rest))
        assert {row["group_id"] for each in pages for row in each["groups"]} == set(MANY)

        cursor, _ = await second(client)
        assert (await page(other, cursor))[1] == 1  # of another client, and of the same one
        other_fields = {"include_authorized_operations": True}
        assert (await page(client, cursor, **other_fields))[1] == 1
        cursor, _ = await second(client)
        third, questions = await page(client, cursor)
        assert questions == 0
        # One that is asked for again is wanted as it is now.
        rows.groups["g00"] = ["new"]
        again, questions = await page(client, cursor)
        assert (again, questions) == (third, 1)

        cursor, _ = await second(client)
        await client.ask(CREATE_TOPICS, 7, {"topics": [{"name": "changed", "num_partitions": 1}]})
        assert (await page(client, cursor))[1] == 1
        cursor, _ = await second(client)
        url = "http://{}:{}/v1/namespaces/acme/kafka/topics/mail".format(*front.http_address or ())
        async with aiohttp.ClientSession() as http, http.delete(url) as answer:
            assert answer.status == 204
        assert (await page(client, cursor))[1] == 1


async def test_without_room_for_the_next_pages_they_are_not_asked_for(
    front: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert front.kafka_address is not None
    assert front._core is not None
    named: list[int] = []
    request = KafkaCluster.request

    async def noting(
        self: KafkaCluster, target: Any, api: Api, version: Any, body: Fields, *rest: Any, **more: Any
    ) -> Fields:
        if api is DESCRIBE_GROUPS:
            named.append(len(body["groups"]))
        return await request(self, target, api, version, body, *rest, **more)

    async with raw_client(front.kafka_address) as client:
        begun = await client.ask(DESCRIBE_GROUPS, 5, SOME)
        snapshots = front._core.pipeline.permits.snapshots
        monkeypatch.setattr(KafkaCluster, "request", noting)
        monkeypatch.setattr(type(snapshots), "try_acquire", lambda *_: None)
        cursor, pages = begun["next_cursor"], 0
        while cursor is not None:
            cursor = (await client.ask(DESCRIBE_GROUPS, 5, {**SOME, "cursor": cursor}))["next_cursor"]
            pages += 1
        limit: int = SOME["response_pagination_limit"]
        assert named[0] > 2 * limit
        assert pages > 3
        assert max(named[1:]) <= limit + 1


async def test_each_page_is_asked_for_where_topics_are_hidden(
    tmp_path: Path, asked: Counter[Api], rows: ClusterRows
) -> None:
    """What rules and masks decide is of one page alone."""
    async with (
        small_cluster(tmp_path) as cluster,
        gateway(tmp_path, cluster.address, {"secrets": Secrets()}, max_age=60) as broker,
        raw_client(_address(broker)) as client,
    ):
        cursor, pages = None, 0
        while not pages or cursor is not None:
            before = asked[DESCRIBE_GROUPS]
            cursor = (await client.ask(DESCRIBE_GROUPS, 5, {**SOME, "cursor": cursor}))["next_cursor"]
            pages += 1
            assert asked[DESCRIBE_GROUPS] > before
        assert pages > 3


INDEXES = [0, 1, 2]
#: Requests for the partitions of one topic.
OF_TOPIC: list[tuple[Api, int, Callable[[str, uuid.UUID], Fields]]] = [
    (METADATA, 13, lambda name, _: {"topics": [{"name": name}]}),
    (
        LIST_OFFSETS,
        11,
        lambda name, _: {
            "topics": [
                {"name": name, "partitions": [{"partition_index": each, "timestamp": -1} for each in INDEXES]}
            ]
        },
    ),
    (DESCRIBE_LOG_DIRS, 5, lambda name, _: {"topics": [{"topic": name, "partitions": INDEXES}]}),
    (DESCRIBE_PRODUCERS, 0, lambda name, _: {"topics": [{"name": name, "partition_indexes": INDEXES}]}),
    (LIST_PARTITION_REASSIGNMENTS, 0, lambda _name, _id: {"topics": None}),
    (
        OFFSET_FETCH,
        9,
        lambda name, _: {
            "groups": [{"group_id": "g", "topics": [{"name": name, "partition_indexes": INDEXES}]}]
        },
    ),
    (
        OFFSET_FETCH,
        10,
        lambda _, of: {
            "groups": [{"group_id": "g", "topics": [{"topic_id": of, "partition_indexes": INDEXES}]}]
        },
    ),
]


@pytest.mark.parametrize("is_hiding", [False, True])
async def test_a_topic_made_anew_begins_at_its_first_partition(
    tmp_path: Path, rows: ClusterRows, is_hiding: bool
) -> None:
    """The cluster tells the gateway nothing of it, and its snapshot is the old one all the time."""
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
    ):
        names = [f"t{number}" for number in range(len(OF_TOPIC))]
        (await cluster.create_topics([NewTopic(name, 3) for name in names])).all()

        async def id_of(name: str) -> uuid.UUID:
            return (await cluster.describe_topics([name]))[name].topic_id

        async def page(number: int, limit: int, cursor: Fields | None) -> Any:
            api, version, body_of = OF_TOPIC[number]
            body = body_of(names[number], await id_of(names[number]))
            asked = {**body, "response_pagination_limit": limit, "cursor": cursor}
            return (await client.ask(api, version, asked))["next_cursor"]

        for number, name in enumerate(names):
            rows.producers = {(name, each): [1] for each in INDEXES}
            rows.reassigned = {name: INDEXES}
            first = await page(number, 2, None)
            former = await id_of(name)
            assert (first["topic_name"], first["partition_index"], first["topic_id"]) == (name, 2, former)
            assert await page(number, 1, first) is None
            (await cluster.delete_topics([name])).all()
            (await cluster.create_topics([NewTopic(name, 3)])).all()
            second = await page(number, 1, first)
            if (
                is_hiding and OF_TOPIC[number][1] == 10
            ):  # an id that the snapshot does not know is that of no topic
                continue
            assert second["partition_index"] == 1
            third = await page(number, 1, second)
            assert (third["partition_index"], third["topic_id"]) == (2, await id_of(name))
            assert await page(number, 1, third) is None
            begun = await page(number, 1, {**first, "partition_index": 0})
            assert (begun["partition_index"], begun["topic_id"]) == (1, await id_of(name))


def _address(broker: Broker) -> tuple[str, int]:
    assert broker.kafka_address is not None
    return broker.kafka_address


async def test_a_full_page_is_the_last_if_nodes_have_no_rows_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node has no row for a topic of which no partition is asked for (a real 4.3.1 has none either)."""
    monkeypatch.setattr(page_parts, "FEW_ROWS", 0)
    port = free_port()
    async with (
        small_cluster(tmp_path) as cluster,
        gateway(tmp_path, cluster.address, ports=str(port)),
        raw_client(("127.0.0.1", port)) as client,
    ):
        topics = [{"name": "a", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        topics += [{"name": name, "partitions": []} for name in ("b", "c", "d")]
        answer = await client.ask(LIST_OFFSETS, 8, {"topics": topics, "response_pagination_limit": 1})
        assert ([row["name"] for row in answer["topics"]], answer["next_cursor"]) == (["a"], None)
