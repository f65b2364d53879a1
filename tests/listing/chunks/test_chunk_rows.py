"""Rows of a chunk: a range if they are adjacent, with the size and the hash of their names."""

from __future__ import annotations

import numpy as np

from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.listing import data_of
from broker_core.listing.listing_hash import crc_text, topics_hash, without_first_comma
from tests.support.topics import listing_of, persistent

NAMES = persistent("a", "b", "cc", "d" * 200, "e")
(CHUNK,) = data_of(listing_of(NAMES)).chunks


def test_neighbours_are_a_range() -> None:
    assert ChunkRows.of(np.array([2, 3])).rows is None
    some = ChunkRows.of(np.array([1, 3]))
    assert (some.low, some.high, len(some)) == (1, 4, 2)
    assert some.rows is not None
    assert some.rows.dtype == np.int32
    assert not some.rows.flags.writeable
    assert len(ChunkRows.of(np.array([], np.int64))) == 0
    assert ChunkRows(1, 3).array.tolist() == [1, 2]
    assert (ChunkRows(0, 5).nbytes, some.nbytes) == (0, 8)


def test_a_stretch() -> None:
    some = ChunkRows.of(np.array([0, 2, 4]))
    assert [some.stretch(low, 3).array.tolist() for low in range(4)] == [[0, 2, 4], [2, 4], [4], []]
    assert ChunkRows(1, 5).stretch(1, 3).array.tolist() == [2, 3]


def test_rows_at_places_among_them() -> None:
    for rows in (ChunkRows(1, 4), ChunkRows.of(np.array([0, 2, 4]))):
        own = rows.array.tolist()
        for places in ([], [0], [2], [0, 2], [1, 2], [0, 1, 2]):
            found = rows.at(np.array(places, np.int64))
            assert found.array.tolist() == [own[place] for place in places]
        assert rows.at(np.arange(3)) is rows


def test_the_size_and_the_hash_of_the_names() -> None:
    for rows in (ChunkRows(1, 4), ChunkRows.of(np.array([0, 3])), ChunkRows(0, 5), ChunkRows(2, 2)):
        names = [NAMES[row] for row in rows.array]
        assert rows.known_text is None
        assert crc_text(without_first_comma(rows.text(CHUNK))) == topics_hash(names)
        assert rows.known_text is not None
        assert rows.text(CHUNK).size == sum(len(name) + 1 for name in names)
        assert rows.fields_size(CHUNK) == sum(len(name) + (2 if len(name) < 128 else 3) for name in names)
