from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.topic_table import TopicChunk, TopicTable
from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.servers.kafka.pages.topic_pages import topics_of_page
from broker_core.service import VisibleTopics
from broker_core.wire.kafka import DESCRIBE_TOPIC_PARTITIONS, Fields, read_response, response_frame
from broker_core.wire.kafka.topic_fragments import described_family
from tests.support.topic_chunks import chunk_of


class Cursor(NamedTuple):
    topic_name: str
    partition_index: int


PARTITIONS = {f"t{number}": 1 + number % 4 for number in range(9)}
_NAMES = list(PARTITIONS)
TABLE = TopicTable(
    [chunk_of({name: PARTITIONS[name] for name in _NAMES[low : low + 3]}) for low in range(0, 9, 3)]
)
Model = list[tuple[str, list[int]]]


def visible(hidden: set[str]) -> VisibleTopics:
    masks = []
    for chunk in TABLE.chunks:
        mask = np.array([name.decode() not in hidden for name in chunk.names.to_pylist()])
        masks.append(None if mask.all() else mask)
    return VisibleTopics(TABLE, masks)


def ask(
    topics: VisibleTopics, start: Cursor, budget: int, operations: Any = None
) -> tuple[list[Fields], Cursor | None]:
    page = AnswerPage(("topic_name", "partition_index"), ("", 0), budget, UnitPlace(start), as_kafka=True)
    found = topics_of_page(page, topics, described_family(1), operations or (lambda _: None))
    assert page.is_filled
    frame = b"".join(response_frame(DESCRIBE_TOPIC_PARTITIONS, 0, 1, {"topics": found}))
    following = page.next_cursor
    return read_response(DESCRIBE_TOPIC_PARTITIONS, 0, frame[4:])[1]["topics"], (
        None if following is None else Cursor(**following)
    )


def shown(rows: list[Fields]) -> Model:
    return [(row["name"], [each["partition_index"] for each in row["partitions"]]) for row in rows]


def model(names: list[str], start: Cursor, budget: int) -> tuple[Model, Cursor | None]:
    """The pages of Kafka's own handler, topic by topic."""
    rows: Model = []
    for name in names:
        if name < start.topic_name:
            continue
        if not budget:
            return rows, Cursor(name, 0)
        first = start.partition_index if name == start.topic_name else 0
        end = min(PARTITIONS[name], first + budget)
        rows.append((name, list(range(first, end))))
        if end < PARTITIONS[name]:
            return rows, Cursor(name, end)
        budget -= max(end - first, 0)
    return rows, None


@given(
    st.sets(st.sampled_from(_NAMES)),
    st.sampled_from([*_NAMES, "", "t3x", "u"]),
    st.integers(0, 5) | st.just(2**31 - 1),
    st.integers(1, 12),
)
def test_a_page_is_that_of_kafka(hidden: set[str], name: str, partition: int, budget: int) -> None:
    start = Cursor(name, partition)
    rows, following = ask(visible(hidden), start, budget)
    wanted = model([each for each in _NAMES if each not in hidden], start, budget)
    assert (shown(rows), following) == wanted


def test_what_is_encoded_already_is_not_encoded_for_a_page() -> None:
    fresh, _ = ask(visible({"t4"}), Cursor("t1", 0), 12)
    for chunk in TABLE.chunks:
        described_family(1).of(chunk)
    try:
        assert ask(visible({"t4"}), Cursor("t1", 0), 12)[0] == fresh
    finally:
        for chunk in TABLE.chunks:
            chunk.forget(described_family(1).key)
    assert ask(visible({"t4"}), Cursor("t1", 0), 12)[0] == fresh
    assert TABLE.chunks[0].known(described_family(1).key) is None


def test_operations_are_those_of_the_caller() -> None:
    def operations(chunk: TopicChunk) -> Any:
        return np.array([int(name[1:]) for name in chunk.names.to_pylist()], np.int32)

    rows, _ = ask(visible({"t1"}), Cursor("t3", 1), 5, operations)
    assert [(row["name"], row["topic_authorized_operations"]) for row in rows] == [
        ("t3", 3),
        ("t4", 4),
        ("t5", 5),
    ]
    rows, _ = ask(visible(set()), Cursor("", 0), 1)
    assert rows[0]["topic_authorized_operations"] == 3576
