from __future__ import annotations

import numpy as np
import pyarrow as pa

from broker_core.listing.topic_table import RenderedChunk, TopicChunk, TopicRow


def chunk(*names: str, ids: bool = True) -> TopicChunk:
    columns = [name.encode() for name in names]
    return TopicChunk(
        pa.array(columns, pa.large_binary()),
        np.arange(1, len(names) + 1, dtype=np.int32),
        pa.array([name.encode().ljust(16) for name in names], pa.large_binary()) if ids else None,
    )


def test_a_row_is_a_topic() -> None:
    topics = chunk("__consumer_offsets", "b")
    assert topics.row(1) == TopicRow(b"b", 2, b"b".ljust(16))
    assert chunk("b", ids=False).row(0).topic_id == bytes(16)


def test_a_place_is_the_first_name_that_is_not_less() -> None:
    topics = chunk("b", "d")
    assert [topics.place(name) for name in (b"a", b"b", b"c", b"d", b"e")] == [0, 0, 1, 1, 2]


def test_what_is_rendered_is_kept_and_counted() -> None:
    topics = chunk("b", "d")
    before = topics.nbytes
    assert topics.known("family") is None
    made = RenderedChunk(memoryview(b"bbd"), np.array([0, 2, 3]))
    assert topics.rendered("family", lambda _: made) is made
    assert topics.rendered("family", lambda _: RenderedChunk(memoryview(b""), np.array([0]))) is made
    assert topics.nbytes == before + made.nbytes > before


def test_a_mask_leaves_rows_out() -> None:
    rendered = RenderedChunk(memoryview(b"abbccc"), np.array([0, 1, 3, 6]))
    assert bytes(rendered.joined(np.array([True, False, True]))) == b"accc"
    assert bytes(rendered.joined(np.zeros(3, bool))) == b""
    assert rendered.joined(None) is rendered.data
    assert bytes(rendered.rows(np.array([1, 2]))) == b"bbccc"
    assert bytes(rendered.rows(np.array([0, 2]))) == b"accc"


def test_what_was_rendered_is_told_once_and_can_be_forgotten() -> None:
    topics = chunk("b")
    made = topics.rendered("family", lambda _: RenderedChunk(memoryview(b"b"), np.array([0, 1])))
    assert topics.take_unheld() == [("family", made)]
    assert topics.take_unheld() == []
    topics.forget("family")
    assert topics.known("family") is None
