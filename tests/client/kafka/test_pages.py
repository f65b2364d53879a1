from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.client import UnexpectedAnswer
from broker_core.client.kafka import (
    AdminClient,
    BlockingAdminClient,
    ConfigResource,
    GroupDescription,
    GroupListing,
    OffsetAndMetadata,
    Page,
    ProducerState,
    ReplicaLog,
    Results,
    SecurityDisabledException,
    TopicCollection,
    TopicPartition,
    UnknownTopicOrPartitionException,
)
from broker_core.client.kafka.calls.groups import with_offsets
from broker_core.client.kafka.calls.partitions import LOGS, with_producers
from broker_core.client.kafka.pages import collected, goes_on, joined, latest
from broker_core.wire.kafka import DESCRIBE_GROUPS, FIND_COORDINATOR, LIST_GROUPS, METADATA, Fields
from tests.support.kafka_serving import kafka_broker
from tests.support.kafka_topics import create
from tests.support.scripted_kafka import Asked, ScriptedKafka, in_a_thread, metadata_of

GROUPS = [f"g{number}" for number in range(5)]


def with_pages(node: ScriptedKafka) -> ScriptedKafka:
    """A node that refuses negative limits, and has groups in pages."""

    def metadata(asked: Asked) -> Fields:
        if (asked.value["response_pagination_limit"] or 0) < 0:
            return {"error_code": 42}
        return metadata_of(node)

    def groups(asked: Asked) -> Fields:
        low = 0 if asked.value["cursor"] is None else GROUPS.index(asked.value["cursor"]["group_id"])
        high = low + asked.value["response_pagination_limit"]
        following = {"group_id": GROUPS[high]} if high < len(GROUPS) else None
        return {"groups": [{"group_id": each} for each in GROUPS[low:high]], "next_cursor": following}

    node.handlers |= {METADATA: metadata, LIST_GROUPS: groups}
    return node


async def ids(pages: AsyncIterator[Page[GroupListing]]) -> list[tuple[list[str], str | None]]:
    return [([group.group_id for group in page], page.paged_by) async for page in pages]


async def test_pages_of_the_server() -> None:
    async with with_pages(ScriptedKafka()) as node, AdminClient(node.address) as client:
        assert await ids(client.list_groups_pages(limit=2)) == [
            (GROUPS[:2], "server"),
            (GROUPS[2:4], "server"),
            (GROUPS[4:], "server"),
        ]
        every = await client.list_groups()
        assert ([each.group_id for each in every], every.paged_by) == (GROUPS, "server")
    async with (
        with_pages(ScriptedKafka()) as node,
        AdminClient(node.address, max_request_pagination_size_limit=4) as client,
    ):
        assert [len(page) async for page in client.list_groups_pages(limit=9)] == [4, 1]


async def test_a_server_without_pages_is_asked_for_parts_or_for_the_whole() -> None:
    node = ScriptedKafka()
    node.handlers[LIST_GROUPS] = lambda _: {"groups": [{"group_id": each} for each in GROUPS]}
    node.handlers[DESCRIBE_GROUPS] = lambda asked: {
        "groups": [{"group_id": each, "group_state": "Empty"} for each in asked.value["groups"]]
    }
    async with node, AdminClient(node.address) as client:
        assert await ids(client.list_groups_pages(limit=2)) == [(GROUPS, None)]
        parts = [page async for page in client.describe_groups_pages(GROUPS, limit=2)]
        assert [(list(page), page.paged_by) for page in parts] == [
            (GROUPS[:2], "client"),
            (GROUPS[2:4], "client"),
            (GROUPS[4:], "client"),
        ]
        assert (await client.describe_groups(GROUPS))["g3"].state == "Empty"


async def test_what_the_look_up_refuses_is_in_pages_too() -> None:
    node = ScriptedKafka()

    def metadata(asked: Asked) -> Fields:
        value = metadata_of(node)
        nodes = [*value["brokers"], value["brokers"][0] | {"node_id": 2}]
        topics = [{"name": each["name"], "error_code": 29} for each in asked.value["topics"] or ()]
        return value | {"brokers": nodes, "topics": topics}

    node.handlers |= {
        METADATA: metadata,
        FIND_COORDINATOR: lambda asked: {
            "coordinators": [{"key": each, "error_code": 30} for each in asked.value["coordinator_keys"]]
        },
    }
    partitions = [TopicPartition("a", number) for number in range(3)]
    async with node, AdminClient(node.address) as client:
        passes: list[AsyncIterator[Results[Any, Any]]] = [
            client.describe_groups_pages(GROUPS[:3], limit=2),
            client.list_group_offsets_pages(dict.fromkeys(GROUPS[:3]), limit=2),
            client.list_offsets_pages(dict.fromkeys(partitions, -1), limit=2),
            client.describe_producers_pages(partitions, limit=2),
        ]
        for pages in passes:
            found = [(len(page), len(page.errors), page.paged_by) async for page in pages]
            assert found == [(2, 2, "client"), (1, 1, "client")]


@pytest.mark.parametrize("following", [{"group_id": "g0"}, {"group_id": "f"}])
async def test_pages_that_do_not_go_on_are_an_error(following: Fields) -> None:
    node = with_pages(ScriptedKafka())
    node.handlers[LIST_GROUPS] = lambda _: {"groups": [], "next_cursor": following}
    async with node, AdminClient(node.address) as client:
        with pytest.raises(UnexpectedAnswer, match="the next page would begin at"):
            await client.list_groups()


def test_pages_go_on_in_a_topic_that_was_made_anew() -> None:
    def cursor(name: str, partition: int, number: int) -> Fields:
        return {"topic_name": name, "partition_index": partition, "topic_id": uuid.UUID(int=number)}

    assert goes_on(cursor("b", 5, 1), cursor("b", 2, 2))
    assert goes_on(cursor("b", 5, 1), cursor("b", 6, 1))
    assert not goes_on(cursor("b", 5, 1), cursor("b", 5, 1))
    assert not goes_on(cursor("b", 5, 1), cursor("b", 2, 0))
    assert not goes_on(cursor("b", 5, 1), cursor("a", 9, 2))
    assert not goes_on({"group_id": "a"}, cursor("b", 1, 1))


async def test_a_server_that_loses_its_pages_meanwhile_is_an_error() -> None:
    node = with_pages(ScriptedKafka())
    async with node, AdminClient(node.address) as client:
        pages = client.list_groups_pages(limit=2)
        await anext(pages)
        node.handlers[METADATA] = lambda _: metadata_of(node)
        assert client._cluster is not None
        await (await client._cluster.any_node()).close()
        with pytest.raises(UnexpectedAnswer, match="has no pages"):
            await anext(pages)


def with_numbers(former: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers that go down, or others that began again."""
    return former + more if former[-1] > more[0] else more


async def test_what_a_topic_had_that_was_made_anew_is_dropped() -> None:
    def committed(topic: str, partition: int, offset: int) -> OffsetAndMetadata:
        return OffsetAndMetadata(TopicPartition(topic, partition), offset, -1, "", None)

    former = (committed("a", 0, 1), committed("b", 0, 2), committed("b", 1, 3))
    more = (committed("b", 2, 4), committed("c", 0, 5))
    assert with_offsets(former, more) == former + more
    anew = (committed("b", 0, 6), committed("c", 0, 5))
    assert with_offsets(former, anew) == former[:1] + anew
    states = [ProducerState(number, 0, 0, -1, -1, -1) for number in (9, 7, 3)]
    assert with_producers((states[0],), (states[1],)) == (states[0], states[1])
    assert with_producers((states[1],), (states[0], states[1])) == (states[0], states[1])

    def log(topic: str, partition: int, size: int) -> ReplicaLog:
        return ReplicaLog(1, "/d", TopicPartition(topic, partition), size, 0, False, -1, -1)

    async def pages() -> AsyncIterator[Page[ReplicaLog]]:
        yield Page([log("a", 0, 1), log("b", 0, 1), log("b", 1, 1)], "server")
        yield Page([log("b", 0, 2)], "server")

    assert [row.size for row in await joined(pages(), *LOGS)] == [1, 2]


async def test_parts_of_one_thing_are_joined() -> None:
    async def pages() -> AsyncIterator[Results[str, tuple[int, ...]]]:
        error = UnknownTopicOrPartitionException("x")
        yield Results({"a": (1,), "b": (2,), "c": error}, "server")
        yield Results({"b": (3,), "c": (4,)}, "server")

    found = await collected("cbad", pages(), lambda one, other: one + other)
    assert (list(found), found.paged_by) == (["c", "b", "a", "d"], "server")
    assert (found["a"], found["b"], found["c"]) == ((1,), (2, 3), (4,))
    with pytest.raises(UnexpectedAnswer, match="no row for d"):
        found["d"]
    assert latest(1, 2) == 2

    async def begun_again() -> AsyncIterator[Results[str, tuple[int, ...]]]:
        yield Results({"a": (9,), "b": (8,), "c": (5,)}, "server")
        yield Results({"a": (9, 1), "b": (2,), "c": (3,)}, "server")  # not that which "c" went on with

    found = await collected("abc", begun_again(), with_numbers)
    assert found.all() == {"a": (9, 1), "b": (2,), "c": (3,)}

    async def listed() -> AsyncIterator[Page[int]]:
        yield Page([1, 2], "server")
        yield Page([3], "server")

    every = await joined(listed())
    assert (every[0], every[1:], len(every), repr(every)) == (1, (2, 3), 3, "<Page of 3, paged by server>")


def test_limits_are_positive() -> None:
    with pytest.raises(ValueError, match="max_request_pagination_size_limit is 1 at least"):
        AdminClient("a:1", max_request_pagination_size_limit=0)
    with pytest.raises(ValueError, match="limit is 1 at least"):
        AdminClient("a:1").list_groups_pages(limit=0)
    with pytest.raises(TypeError, match="limit is a whole number, not str: 'x'"):
        AdminClient("a:1").list_groups_pages(limit="x")  # type: ignore[arg-type]


def test_pages_without_an_event_loop() -> None:
    with in_a_thread(with_pages(ScriptedKafka())) as node, BlockingAdminClient(node.address) as client:
        pages = client.list_groups_pages(limit=2)
        assert [[each.group_id for each in page] for page in pages] == [GROUPS[:2], GROUPS[2:4], GROUPS[4:]]
        assert len(client.list_groups()) == 5


async def test_all_operations_at_this_server(tmp_path: Path) -> None:
    catalog = SqliteCatalog(tmp_path / "catalog.sqlite")
    for name, count in (("a", 3), ("b", 1), ("c", 5)):
        create(catalog, name, count)
    catalog.close()
    partitions = [TopicPartition("a", number) for number in range(4)]
    async with kafka_broker(tmp_path) as broker:
        assert broker.kafka_address is not None
        host, port = broker.kafka_address
        async with AdminClient(f"{host}:{port}") as client:
            topics = [[each.name for each in page] async for page in client.list_topics_pages(limit=2)]
            assert [name for page in topics for name in page] == ["a", "b", "c"]
            logs = await client.describe_log_dirs()
            assert (len(logs), logs.paged_by, logs[0].partition) == (9, "server", partitions[0])
            assert [len(page) async for page in client.describe_log_dirs_pages(limit=4)] == [4, 4, 1]
            offsets = await client.list_offsets(dict.fromkeys(partitions, -1))
            assert [offsets[each].offset for each in partitions[:3]] == [0, 0, 0]
            assert list(offsets.errors) == partitions[3:]
            assert (await client.describe_producers(partitions[:3])).all() == dict.fromkeys(
                partitions[:3], ()
            )
            for page in (
                await client.list_groups(),
                await client.list_transactions(),
                await client.list_partition_reassignments(),
            ):
                assert (len(page), page.paged_by) == (0, "server")
            committed = await client.list_group_offsets({"g": partitions[:2], "h": None})
            assert [each.offset for each in committed["g"]] == [-1, -1]
            assert committed["h"] == ()
            missing: list[Results[str, Any]] = [
                await client.describe_groups(["g"]),
                await client.describe_consumer_groups(["g"]),
                await client.describe_transactions(["g"]),
            ]
            assert [getattr(each.errors["g"], "code", None) for each in missing] == [69, 69, 105]
            resources = [ConfigResource.topic(each) for each in ("c", "a", "b")]
            configs = client.describe_configs_pages(resources, names=["retention.ms"], limit=2)
            assert [len(page.all()) async for page in configs] == [2, 1]
            for denied in (client.describe_acls(), anext(client.describe_acls_pages())):
                with pytest.raises(SecurityDisabledException):
                    await denied
        async with AdminClient(f"{host}:{port}", max_request_pagination_size_limit=2) as client:
            listed = await client.list_topics(topic_ids=True)
            assert (listed.names(), listed.paged_by) == (["a", "b", "c"], "server")
            assert (await client.list_topics()).paged_by is None  # by the API for names
            wanted = TopicCollection.of_topic_ids(reversed([*listed.topic_ids().values()]))
            by_id = await client.describe_topics(wanted)
            assert [(each.name, len(each.partitions)) for each in by_id.all().values()] == [
                ("c", 5),
                ("b", 1),
                ("a", 3),
            ]
            described = await client.describe_configs(resources)
            assert (list(described), described.paged_by, by_id.paged_by) == (resources, "server", "server")


def test_a_group_with_its_next_members() -> None:
    assert GroupDescription("g", "Stable", "consumer", "range").members == ()
