"""A stream of record batches, as Arrow reads it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from broker_core.listing.rendered.pieces import BlockSize, arrow_stream

SCHEMA = pa.schema([pa.field("name", pa.string(), nullable=False)])


@pytest.mark.parametrize("sizes", [[], [0], [1, 2, 3]])
def test_batches_are_read_again(sizes: list[int]) -> None:
    batches = [pa.record_batch([pa.array(["é"] * size, pa.string())], schema=SCHEMA) for size in sizes]
    table = pa.ipc.open_stream(b"".join(arrow_stream(SCHEMA, batches, BlockSize()))).read_all()
    assert table.schema == SCHEMA
    assert len(table) == sum(sizes)


def test_the_stream_is_that_of_arrow_itself() -> None:
    batch = pa.record_batch([pa.array(["a", "b"], pa.string())], schema=SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(batch)
    assert b"".join(arrow_stream(SCHEMA, [batch], BlockSize())) == sink.getvalue().to_pybytes()
