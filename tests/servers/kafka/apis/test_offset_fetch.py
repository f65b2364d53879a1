from __future__ import annotations

import uuid

from broker_core.catalog import SqliteCatalog
from broker_core.servers.kafka.apis.offset_fetch import OFFSET_FETCH_ROW
from broker_core.wire.kafka import OFFSET_FETCH, Fields, read_response, response_frame
from tests.support.kafka_calls import NotX, call_of, services_of
from tests.support.kafka_topics import create, kafka_topics

Rows = list[tuple[str, list[tuple[int, int, int]]]]


async def ask(catalog: SqliteCatalog, version: int, body: Fields) -> Fields:
    async with kafka_topics(catalog, authorizer=NotX()) as m:
        services = services_of(named=m.named, authorizer=NotX())
        call = call_of(OFFSET_FETCH, version, body, services=services)
        frame = b"".join(response_frame(OFFSET_FETCH, version, 1, await OFFSET_FETCH_ROW.answered(call)))
        return read_response(OFFSET_FETCH, version, frame[4:])[1]


def shown(topics: list[Fields]) -> Rows:
    return [
        (
            row["name"],
            [
                (one["partition_index"], one["committed_offset"], one["error_code"])
                for one in row["partitions"]
            ],
        )
        for row in topics
    ]


async def test_nothing_was_committed(catalog: SqliteCatalog) -> None:
    # As Kafka 4.3.1 answers of a group that is not there, and of topics that are not there.
    topics = [
        {"name": "a", "partition_indexes": [0, 7], "topic_id": uuid.UUID(int=0)},
        {"name": "xx", "partition_indexes": [1], "topic_id": uuid.UUID(int=0)},
        {"name": "empty", "partition_indexes": [], "topic_id": uuid.UUID(int=0)},
    ]
    wanted: Rows = [("a", [(0, -1, 0), (7, -1, 0)]), ("xx", [(1, -1, 29)]), ("empty", [])]
    for version in range(1, 8):
        answer = await ask(catalog, version, {"group_id": "g", "topics": topics})
        assert (shown(answer["topics"]), answer["error_code"]) == (wanted, 0)
        denied = await ask(catalog, version, {"group_id": "x", "topics": topics[:1]})
        rows: Rows = [("a", [(0, -1, 30), (7, -1, 30)])] if version == 1 else []
        assert (shown(denied["topics"]), denied["error_code"]) == (rows, 30 if version > 1 else 0)
    for version in (8, 9):
        groups = [{"group_id": name, "topics": topics} for name in ("g", "x")]
        answer = await ask(catalog, version, {"groups": [*groups, {"group_id": "h", "topics": None}]})
        assert [(row["group_id"], shown(row["topics"]), row["error_code"]) for row in answer["groups"]] == [
            ("g", wanted, 0),
            ("x", [], 30),
            ("h", [], 0),
        ]


async def test_from_version_10_on_topics_are_named_by_their_ids(catalog: SqliteCatalog) -> None:
    known = create(catalog, "a", 2).topic_id
    ids = [known, uuid.UUID(int=5)]
    topics = [{"topic_id": each, "partition_indexes": [0]} for each in ids]
    answer = await ask(catalog, 10, {"groups": [{"group_id": "g", "topics": topics}]})
    rows = answer["groups"][0]["topics"]
    assert [(row["topic_id"], row["partitions"][0]["error_code"]) for row in rows] == [
        (known, 0),
        (uuid.UUID(int=5), 100),
    ]
