from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.listing.topic_table import Place, TableChange, TopicRow, TopicTable
from broker_core.listing.topic_table.topic_table import MOST


def table(names: list[str], partitions: int = 0) -> TopicTable:
    columns = pa.array([name.encode() for name in names], pa.large_binary())
    ids = pa.array([name.encode()[-16:].ljust(16) for name in names], pa.large_binary())
    return TopicTable.of_columns(columns, np.full(len(names), partitions, np.int32), ids, words)


def words(names: pa.LargeBinaryArray) -> np.ndarray[Any, Any] | None:
    """Which names have letters of ASCII alone; ``None``: all."""
    shown = np.array([name.isalnum() for name in names.to_pylist()], bool)
    return None if shown.all() else shown


def names_of(topics: TopicTable) -> list[str]:
    return [name.decode() for chunk in topics.chunks for name in chunk.names.to_pylist()]


def test_names_are_in_order_and_those_that_are_not_shown_are_counted() -> None:
    topics = table(["b", "a b", "a", "é", "."])
    assert names_of(topics) == ["a", "b"]
    assert (topics.size, topics.left_out) == (2, 3)


def test_a_topic_without_partitions_shows_one() -> None:
    for partitions, shown in ((0, 1), (5, 5)):
        assert table(["a"], partitions).chunks[0].row(0) == TopicRow(b"a", shown, b"a".ljust(16))


def test_a_topic_is_found_by_its_name_in_many_chunks() -> None:
    names = [f"t{number:05d}" for number in range(0, 3 * MOST, 2)]
    topics = table(names)
    assert len(topics.chunks) == 2
    for name in (names[0], names[MOST - 1], names[-1]):
        chunk, row = topics.from_name(name.encode())
        assert topics.chunks[chunk].name(row) == name.encode()


def test_a_place_is_where_a_cursor_stands() -> None:
    topics = table([f"t{number:05d}" for number in range(2 * MOST)])
    assert topics.from_name(b"") == topics.from_name(b"t00000") == Place(0, 0)
    assert topics.from_name(b"t00000x") == Place(0, 1)
    between = f"t{MOST - 1:05d}x".encode()
    assert topics.from_name(between) == topics.from_name(f"t{MOST:05d}".encode()) == Place(1, 0)
    assert topics.from_name(b"u") == Place(2, 0)
    assert TopicTable(()).from_name(b"a") == Place(0, 0)


def test_changes_of_names_that_are_not_shown_are_counted() -> None:
    topics = table(["a", "b c"])
    moved = topics.moved(
        [
            TableChange(b"b c", None, bytes(16), True),
            TableChange(b"d e", 1, bytes(16), False),
            TableChange(b"d e", 2, bytes(16), True),
            TableChange(b"f g", 1, bytes(16), False),
        ]
    )
    assert (names_of(moved), moved.left_out) == (["a"], 2)
    assert moved.nbytes == topics.nbytes
