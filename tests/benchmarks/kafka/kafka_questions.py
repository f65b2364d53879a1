"""What is measured of a Kafka server with many topics: each figure is the seconds of one turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from broker_core.wire.kafka import (
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_TOPIC_PARTITIONS,
    LIST_CONFIG_RESOURCES,
    LIST_TOPICS,
    METADATA,
    Api,
    read_response,
    request_frame,
    response_frame,
)
from tests.benchmarks.kafka.kafka_connection import KafkaConnection

__all__ = ["create_topics", "questions", "topic_count"]

#: Topics in one request.
BATCH: Final = 500
#: Topics that are asked for by name in one request.
NAMED: Final = 10_000
#: The type of a topic in ListConfigResources.
_TOPIC: Final = 2
#: Bytes behind the topics of a page: no cursor, and no tags.
_NO_CURSOR: Final = 2
_NUMBERS = count()


def _frame(api: Api, version: int, value: Mapping[str, Any]) -> bytes:
    return request_frame(api, version, 7, "bench", value)


_ALL: Final = _frame(METADATA, 13, {"topics": None, "allow_auto_topic_creation": False})


def topic_count(connection: KafkaConnection) -> int:
    """The topics that a listing has."""
    _, message = connection.exchange(_ALL)
    return len(read_response(METADATA, 13, bytes(message))[1]["topics"])


def create_topics(connection: KafkaConnection, names: list[str]) -> None:
    """Topics of one partition."""
    for at in range(0, len(names), BATCH):
        _raise_errors(connection.ask(CREATE_TOPICS, 7, _creation(names[at : at + BATCH]))["topics"])


def _creation(names: list[str]) -> dict[str, Any]:
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    return {"topics": topics, "timeout_ms": 60_000}


def _raise_errors(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["error_code"]:
            raise RuntimeError(f"{row['name']}: error {row['error_code']}: {row['error_message']}")


def questions(
    connection: KafkaConnection, names: Iterable[str], *, page: int = 2000
) -> dict[str, Callable[[], float]]:
    """The figures that this server can give, by their names; it has topics of these names, of one partition each."""
    ordered = sorted(names)
    only_names = (
        _frame(LIST_TOPICS, 0, {"list_internal": True})
        if LIST_TOPICS.key in connection.apis
        else _frame(LIST_CONFIG_RESOURCES, 1, {"resource_types": [_TOPIC]})
    )
    middle = connection.ask(METADATA, 13, {"topics": [{"name": ordered[len(ordered) // 2]}]})["topics"][0]
    by_id = _frame(METADATA, 13, {"topics": [{"name": None, "topic_id": middle["topic_id"]}]})
    named = _frame(METADATA, 13, {"topics": [{"name": name} for name in ordered[:NAMED]]})
    pages = list(_pages(ordered, page))
    found: dict[str, Callable[[], float]] = {
        "Metadata v13 of all": lambda: connection.exchange(_ALL)[0],
        f"Metadata v13 of {NAMED:,} names": lambda: connection.exchange(named)[0],
        "names only": lambda: connection.exchange(only_names)[0],
        f"all, in pages of {page}": lambda: sum(_seconds(connection, *each) for each in pages),
        f"the first page of {page}": lambda: _seconds(connection, *pages[0]),
        f"the last page of {page}": lambda: _seconds(connection, *pages[-1]),
        "Metadata v13 by id": lambda: connection.exchange(by_id)[0],
    }
    if CREATE_TOPICS.key in connection.apis:
        found[f"create {BATCH}, then list all"] = lambda: _create_and_list(connection)
    return found


def _pages(ordered: Sequence[str], size: int) -> Iterator[tuple[bytes, bytes]]:
    """For each page the request, and the end of its answer.

    That is where the next page begins: to read a million topics for it would take longer than the turns.
    """
    empty = _page_of_none(None)
    for at in range(0, len(ordered), size):
        cursor = _cursor(ordered[at]) if at else None
        asked: dict[str, Any] = {"topics": [], "response_partition_limit": size, "cursor": cursor}
        further = _cursor(ordered[at + size]) if at + size < len(ordered) else None
        yield _frame(DESCRIBE_TOPIC_PARTITIONS, 0, asked), _page_of_none(further)[len(empty) - _NO_CURSOR :]


def _page_of_none(further: Mapping[str, Any] | None) -> bytes:
    return b"".join(response_frame(DESCRIBE_TOPIC_PARTITIONS, 0, 7, {"topics": [], "next_cursor": further}))


def _cursor(name: str) -> dict[str, Any]:
    return {"topic_name": name, "partition_index": 0}


def _seconds(connection: KafkaConnection, frame: bytes, end: bytes) -> float:
    seconds, message = connection.exchange(frame)
    if message[-len(end) :] != end:
        raise RuntimeError(f"a page ends with {bytes(message[-len(end) :])!r} instead of {end!r}")
    return seconds


def _create_and_list(connection: KafkaConnection) -> float:
    """A real broker may list new topics a moment later: it is asked until all are there.

    They are deleted, which is not counted, and neither is the listing without them: the next one shows new topics
    alone.
    """
    turn = next(_NUMBERS)
    names = [f"created-{turn:06d}-{number:03d}" for number in range(BATCH)]
    frame = _frame(CREATE_TOPICS, 7, _creation(names))
    needle = f"created-{turn:06d}-".encode()
    begun = time.perf_counter()
    _, message = connection.exchange(frame)
    created = bytes(message)
    while True:
        _, message = connection.exchange(_ALL)
        if bytes(message).count(needle) == BATCH:
            break
    seconds = time.perf_counter() - begun
    _raise_errors(read_response(CREATE_TOPICS, 7, created)[1]["topics"])
    rows = [{"name": name} for name in names]
    _raise_errors(connection.ask(DELETE_TOPICS, 6, {"topics": rows, "timeout_ms": 60_000})["responses"])
    connection.exchange(_ALL)
    return seconds
