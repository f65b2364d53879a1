"""Reading the body of an answer: every byte once, in order, in pieces of any size."""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pyarrow as pa
import pytest

from broker_core import Listing, Mode
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.fields_reader import GATHERED, FieldsReader
from broker_core.listing.listing import data_of
from tests.support.chunks import tiny_chunks
from tests.support.topics import NAMESPACE


def chunk_of(sizes: list[int], seed: int) -> Chunk:
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    fields = pa.py_buffer(random.Random(seed).randbytes(int(offsets[-1])))
    return Chunk(NAMESPACE, "persistent", fields, offsets)


def reader_of(*pieces: tuple[Chunk, ChunkRows]) -> FieldsReader:
    return FieldsReader.of_rows(pieces, sum(rows.fields_size(chunk) for chunk, rows in pieces))


@pytest.mark.parametrize("seed", range(6))
def test_what_is_read_is_what_there_is(seed: int) -> None:
    rng = random.Random(seed)
    longest = rng.choice([3, 60, 5000, 3 * GATHERED])
    sizes = [rng.randint(1, longest) for _ in range(rng.choice([1, 40, 9000 if longest < 5000 else 200]))]
    chunk = chunk_of(sizes, seed)
    offsets = chunk.field_offsets
    rows = np.array(sorted(rng.sample(range(len(sizes)), rng.randint(1, len(sizes)))), np.int32)
    data = bytes(chunk.fields)
    for reader, expected in (
        (reader_of((chunk, ChunkRows(0, len(sizes)))), data),
        (
            reader_of((chunk, ChunkRows.of(rows)), (chunk, ChunkRows(0, 1))),
            b"".join(data[offsets[row] : offsets[row + 1]] for row in [*rows, 0]),
        ),
    ):
        read = b""
        assert reader.left == len(expected)
        while reader.left:
            piece = reader.read(rng.randint(1, 2 * GATHERED))
            assert len(piece)
            read += piece
            assert reader.left == len(expected) - len(read)
        assert read == expected


def test_a_slice_is_read_without_a_copy() -> None:
    chunk = chunk_of([10] * 10, 1)
    piece = reader_of((chunk, ChunkRows(2, 5))).read(1000)
    assert piece.obj is chunk.fields
    assert bytes(piece) == bytes(chunk.fields)[20:50]


def test_gathered_rows_are_never_all_in_memory() -> None:
    chunk = chunk_of([100] * 50_000, 2)
    before = pa.total_allocated_bytes()
    reader = reader_of((chunk, ChunkRows.of(np.arange(0, 50_000, 2, dtype=np.int32))))
    most = 0
    while reader.left:
        reader.read(1000)
        most = max(most, pa.total_allocated_bytes() - before)
    assert 0 < most <= 1.5 * GATHERED


def test_all_that_is_left_is_one_buffer() -> None:
    chunk = chunk_of([100] * 5000, 3)
    rows = np.arange(0, 5000, 2, dtype=np.int32)
    expected = b"".join(bytes(chunk.fields)[100 * row : 100 * row + 100] for row in rows)
    reader = reader_of((chunk, ChunkRows.of(rows)))
    begin = bytes(reader.read(150))
    assert begin + bytes(reader.read_all()) == expected
    assert (reader.left, len(reader.read_all())) == (0, 0)


def test_bytes_that_are_there_already() -> None:
    for data in (b"", b"frame"):
        reader = FieldsReader.of(data)
        assert reader.left == len(data)
        assert bytes(reader.read(100)) == data


def test_a_few_rows_of_each_of_many_chunks_are_one_piece() -> None:
    chunks = [chunk_of([50] * 100, seed) for seed in range(80)]
    some = [np.arange(5, 9), np.array([1, 7, 9]), np.arange(0, 100, 2)]
    pieces = [(chunk, ChunkRows.of(some[at % 3])) for at, chunk in enumerate(chunks)]
    reader = reader_of(*pieces)
    # Not those of too many chunks at a time, which would take long.
    read = [reader.read(10**9) for _ in range(3)]
    assert reader.left == 0
    assert b"".join(read) == b"".join(
        bytes(chunk.fields)[50 * row : 50 * row + 50] for chunk, rows in pieces for row in rows.array
    )
    large = chunk_of([1000] * 1000, 99)
    reader = reader_of(
        (chunks[0], ChunkRows(0, 2)), (large, ChunkRows(0, 1000)), (chunks[1], ChunkRows(0, 2))
    )
    assert [len(reader.read(10**9)) for _ in range(4)] == [100, 10**6, 100, 0]


def test_a_slow_reader_of_a_former_version_holds_the_changed_chunks_alone() -> None:
    names = [f"persistent://t/n/{'x' * 90}{number:04d}" for number in range(2000)]
    with tiny_chunks(10_000):
        old = Listing.from_names("t/n", Mode.PERSISTENT, names)
        body = bytes(old.all().body())
        reader = old.all().reader()
        read = bytes(reader.read(100))
        former = [weakref.ref(each) for each in data_of(old).chunks]
        new = old.with_changes(names[1000:1001], [])
        del old
        shared = set(map(id, data_of(new).chunks))
        held = [each for each in former if id(each()) not in shared]
        assert len(former) > 10
        assert len(held) == 1
        assert held[0]() is not None
        while reader.left:
            read += reader.read(700)
        assert read == body
        del reader
        gc.collect()
        assert [each for each in former if each() is None] == held


def test_small_pieces_are_put_together_and_large_ones_are_not_copied() -> None:
    large = bytes(20_000)
    reader = FieldsReader.of_pieces([b"a", b"b", large, b"c", large, *[b"d"] * 100])
    assert reader.left == 40_000 + 103
    pieces = []
    while reader.left:
        pieces.append(reader.read(1 << 20))
    assert [len(piece) for piece in pieces] == [2, 20_000, 1, 20_000, 64, 36]
    assert pieces[1].obj is large
    assert b"".join(pieces) == b"".join([b"ab", large, b"c", large, b"d" * 100])
