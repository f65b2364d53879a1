"""Record batches as an Arrow IPC stream, piece by piece: the schema, each batch, the end.

https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from broker_core.listing.rendered.block_size import BlockSize
from broker_core.listing.rendered.pieces import joined_pieces

__all__ = ["arrow_stream"]

#: The mark of a message, and no bytes of it.
_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def arrow_stream(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], size: BlockSize
) -> Iterator[bytes | memoryview]:
    """The stream of batches of one schema without dictionaries; a reader that misses its end knows that it was cut."""
    return joined_pieces(_messages(schema, batches), size)


def _messages(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
    yield memoryview(schema.serialize())
    for batch in batches:
        yield memoryview(batch.serialize())
    yield _END
