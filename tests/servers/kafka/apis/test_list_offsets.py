from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from broker_core import TopicListingResult
from broker_core.catalog import SqliteCatalog
from broker_core.kafka.acls.bindings import Operation
from broker_core.servers.kafka.apis.list_offsets import LIST_OFFSETS_ROW
from broker_core.servers.kafka.callers.authorizer import Authorizer, Caller
from broker_core.wire.kafka import LIST_OFFSETS, Fields, read_response, response_frame
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_calls import call_of, services_of
from tests.support.kafka_topics import create, kafka_topics
from tests.support.plugins import PluginOf

#: What a broker answers of a partition without messages: version, time, code, offset and, from version 4 on, epoch.
VECTORS = Path(__file__).resolve().parents[3] / "vectors" / "kafka-4.3.1-empty-log.json"


async def ask(
    catalog: SqliteCatalog,
    version: int,
    topics: list[Fields],
    authorizer: Authorizer | None = None,
    plugins: dict[str, object] | None = None,
) -> list[tuple[str, int, int, int]]:
    """Name, partition, code and offset of each row."""
    async with kafka_topics(catalog, plugins, authorizer) as m:
        call = call_of(LIST_OFFSETS, version, {"topics": topics}, services=services_of(named=m.named))
        answer = await LIST_OFFSETS_ROW.answered(call)
    frame = b"".join(response_frame(LIST_OFFSETS, version, 1, answer))
    return [
        (topic["name"], row["partition_index"], row["error_code"], row["offset"])
        for topic in read_response(LIST_OFFSETS, version, frame[4:])[1]["topics"]
        for row in topic["partitions"]
    ]


def of(name: str, *partitions: int, timestamp: int = -1, epoch: int = -1) -> Fields:
    rows = [
        {"partition_index": index, "timestamp": timestamp, "current_leader_epoch": epoch}
        for index in partitions
    ]
    return {"name": name, "partitions": rows}


async def test_answers_of_an_empty_log_in_every_version(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 1)
    vectors = json.loads(VECTORS.read_text())["rows"]
    assert len(vectors) > 90
    async with kafka_topics(catalog) as m:
        for version, timestamp, code, offset, epoch in vectors:
            body = {"topics": [of("a", 0, timestamp=timestamp)]}
            call = call_of(LIST_OFFSETS, version, body, services=services_of(named=m.named))
            frame = b"".join(response_frame(LIST_OFFSETS, version, 1, await LIST_OFFSETS_ROW.answered(call)))
            [topic] = read_response(LIST_OFFSETS, version, frame[4:])[1]["topics"]
            [row] = topic["partitions"]
            assert (row["error_code"], row["offset"], row["timestamp"]) == (code, offset, -1), (
                version,
                timestamp,
            )
            assert version < 4 or row["leader_epoch"] == epoch, (version, timestamp)


async def test_partitions_that_there_are_not(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 2)
    create(catalog, "plain")
    asked = [of("a", 0, 2, -1), of("plain", 0, 1), of("none", 0), of("a b", 0)]
    assert await ask(catalog, 7, asked) == [
        ("a", 0, 0, 0),
        ("a", 2, 3, -1),
        ("a", -1, 3, -1),
        ("plain", 0, 0, 0),
        ("plain", 1, 3, -1),
        ("none", 0, 3, -1),
        ("a b", 0, 3, -1),
    ]
    assert await ask(catalog, 7, [of("a", 0, epoch=1), of("a", 1, epoch=0)]) == [
        ("a", 0, 75, -1),
        ("a", 1, 0, 0),
    ]


async def test_topics_and_partitions_that_are_named_twice_are_answered_once(catalog: SqliteCatalog) -> None:
    """A real 4.3.1 answers so, but for the order: it has that of its hash tables."""
    create(catalog, "a", 2)
    asked = [
        of("a", 1),
        of("b"),
        of("none", 0, 0, 1),
        of("a", 0, 0, 5),
        of("a", 1, timestamp=-2),
        of("none", 0),
    ]
    async with kafka_topics(catalog) as m:
        call = call_of(LIST_OFFSETS, 7, {"topics": asked}, services=services_of(named=m.named))
        answer = await LIST_OFFSETS_ROW.answered(call)
    assert [row["name"] for row in answer["topics"]] == ["a", "none"]
    assert await ask(catalog, 7, asked) == [
        ("a", 1, 42, -1),
        ("a", 0, 42, -1),
        ("a", 5, 3, -1),
        ("none", 0, 42, -1),
        ("none", 1, 3, -1),
    ]


async def test_what_may_not_be_seen_has_no_offsets(catalog: SqliteCatalog) -> None:
    class NotB(AllowAll):
        enabled = True

        def allows(self, caller: Caller, operation: Operation, kind: object, name: str) -> bool:
            return (operation, name) != (Operation.DESCRIBE, "b")

    def visible(topics: pa.LargeStringArray) -> pa.BooleanArray:
        return pc.not_equal(topics, "persistent://public/default/a-partition-0")

    def fails() -> TopicListingResult:
        raise RuntimeError("no")

    create(catalog, "a", 1)
    create(catalog, "b", 1)
    asked = [of("a", 0), of("b", 0)]
    assert await ask(catalog, 7, asked, NotB()) == [("a", 0, 0, 0), ("b", 0, 29, -1)]
    # A real 4.3.1 has one row for each naming of a topic that it does not let the client see.
    assert await ask(catalog, 7, [of("b", 0, 0), *asked, of("b", 1)], NotB()) == [
        ("a", 0, 0, 0),
        ("b", 0, 29, -1),
        ("b", 0, 29, -1),
        ("b", 0, 29, -1),
        ("b", 1, 29, -1),
    ]
    assert await ask(catalog, 7, asked, plugins={"p": PluginOf(visible=visible)}) == [
        ("a", 0, 3, -1),
        ("b", 0, 0, 0),
    ]
    assert await ask(catalog, 7, asked[:1], plugins={"p": PluginOf(list_topics=fails)}) == [("a", 0, -1, -1)]
