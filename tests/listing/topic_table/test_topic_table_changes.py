from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.topic_table import (
    RenderedChunk,
    TableChange,
    TopicChunk,
    TopicTable,
    topic_table,
)
from broker_core.listing.topic_table.topic_table import MOST

Model = dict[str, tuple[int, bytes]]
NAMES = st.sampled_from([f"n{number}" for number in range(40)])
CHANGES = st.lists(st.tuples(NAMES, st.none() | st.integers(0, 3), st.binary(min_size=16, max_size=16)))


def table_of(model: Model) -> TopicTable:
    return TopicTable.of_columns(
        pa.array([name.encode() for name in model], pa.large_binary()),
        np.array([partitions for partitions, _ in model.values()], np.int32),
        pa.array([topic_id for _, topic_id in model.values()], pa.large_binary()),
    )


def text_of(chunk: TopicChunk) -> RenderedChunk:
    rows = [chunk.row(row) for row in range(len(chunk))]
    return RenderedChunk.of_column(
        pa.array([b"%s:%d " % (row.name, row.partitions) for row in rows], pa.large_binary())
    )


def rows_of(table: TopicTable) -> list[tuple[str, int, bytes]]:
    rows = [chunk.row(row) for chunk in table.chunks for row in range(len(chunk))]
    return [(row.name.decode(), row.partitions, row.topic_id) for row in rows]


@given(CHANGES, CHANGES)
def test_a_moved_table_is_the_one_that_is_made_anew(before: list, changed: list) -> None:  # type: ignore[type-arg]
    with patch.object(topic_table, "MOST", 4), patch.object(topic_table, "_LEAST", 2):
        model: Model = {name: (count or 0, topic_id) for name, count, topic_id in before}
        table = table_of(model)
        for chunk in table.chunks:
            chunk.rendered("text", text_of)
        changes = []
        for name, count, topic_id in changed:
            changes.append(TableChange(name.encode(), count, topic_id, name in model))
            if count is None:
                model.pop(name, None)
            else:
                model[name] = (count, topic_id)
        moved = table.moved(changes)
        assert rows_of(moved) == rows_of(table_of(model))
        assert all(0 < len(chunk) <= 4 for chunk in moved.chunks)
        for chunk in moved.chunks:
            known = chunk.known("text")
            assert known is None or known.column() == text_of(chunk).column()


def test_a_changed_chunk_keeps_what_was_rendered_and_renders_what_is_new() -> None:
    table = table_of({f"t{number:05d}": (1, bytes(16)) for number in range(10)})
    rendered: list[int] = []

    def render(chunk: TopicChunk) -> RenderedChunk:
        rendered.append(len(chunk))
        return text_of(chunk)

    before = table.chunks[0].rendered("text", render)
    rendered.clear()
    moved = table.moved([TableChange(b"new", 3, bytes(16), False)])
    assert rendered == [1]
    known = moved.chunks[0].known("text")
    assert known is not None
    assert bytes(known.data).startswith(b"new:3 t00000:1 ")
    assert moved.chunks[0].nbytes > known.nbytes > before.nbytes
    assert not moved.chunks[0].take_unheld()


def test_chunks_without_a_change_are_shared() -> None:
    table = table_of({f"t{number:05d}": (1, bytes(16)) for number in range(4 * MOST)})
    moved = table.moved([TableChange(b"t00001", 3, bytes(16), True)])
    assert moved.chunks[1:] == table.chunks[1:]
    assert moved.chunks[0] is not table.chunks[0]
    assert [row[:2] for row in rows_of(moved)[:2]] == [("t00000", 1), ("t00001", 3)]
    assert table.moved([]).chunks == table.chunks


def test_small_neighbours_are_joined() -> None:
    table = table_of({f"t{number:05d}": (1, bytes(16)) for number in range(2 * MOST)})
    gone = [TableChange(f"t{number:05d}".encode(), None, bytes(16), True) for number in range(3, 2 * MOST)]
    assert [len(chunk) for chunk in table.moved(gone).chunks] == [3]
    assert (
        table.moved(
            [
                *gone,
                *(TableChange(row.encode(), None, bytes(16), True) for row in ("t00000", "t00001", "t00002")),
            ]
        ).size
        == 0
    )
