"""Reading the body of an answer: every byte once, in order, in pieces of any size."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from broker_core.listing.fields_reader import GATHERED, FieldsReader


def column(sizes: list[int], seed: int) -> tuple[pa.Buffer, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return pa.py_buffer(random.Random(seed).randbytes(int(offsets[-1]))), offsets


@pytest.mark.parametrize("seed", range(6))
def test_what_is_read_is_what_there_is(seed: int) -> None:
    rng = random.Random(seed)
    longest = rng.choice([3, 60, 5000, 3 * GATHERED])
    sizes = [rng.randint(1, longest) for _ in range(rng.choice([1, 40, 9000 if longest < 5000 else 200]))]
    fields, offsets = column(sizes, seed)
    rows = np.array(sorted(rng.sample(range(len(sizes)), rng.randint(1, len(sizes)))), np.int32)
    data = bytes(fields)
    for reader, expected in (
        (FieldsReader(fields, offsets, 0, len(sizes)), data),
        (
            FieldsReader(fields, offsets, 0, len(sizes), rows),
            b"".join(data[offsets[row] : offsets[row + 1]] for row in rows),
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
    fields, offsets = column([10] * 10, 1)
    piece = FieldsReader(fields, offsets, 2, 5).read(1000)
    assert piece.obj is fields
    assert bytes(piece) == bytes(fields)[20:50]


def test_gathered_rows_are_never_all_in_memory() -> None:
    fields, offsets = column([100] * 50_000, 2)
    before = pa.total_allocated_bytes()
    reader = FieldsReader(fields, offsets, 0, 50_000, np.arange(0, 50_000, 2, dtype=np.int32))
    most = 0
    while reader.left:
        reader.read(1000)
        most = max(most, pa.total_allocated_bytes() - before)
    assert 0 < most <= 3 * GATHERED


def test_bytes_that_are_there_already() -> None:
    for data in (b"", b"frame"):
        reader = FieldsReader.of(data)
        assert reader.left == len(data)
        assert bytes(reader.read(100)) == data
