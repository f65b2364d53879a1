"""The names in the body of a listing as one column, and details as a table: no Python object for each."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.client.client_errors import UnexpectedAnswer

__all__ = ["details_of_arrow", "names_of_arrow", "names_of_json"]


def names_of_arrow(body: bytes) -> pa.LargeStringArray:
    """The column ``name`` of an Arrow stream. Raises :exc:`UnexpectedAnswer`."""
    try:
        with pa.ipc.open_stream(pa.BufferReader(body)) as stream:
            # Other types may stand for far more names, or bytes, than were sent.
            if stream.schema.field("name").type not in (pa.string(), pa.large_string()):
                raise UnexpectedAnswer("the answer is no listing as an Arrow stream: its names are no texts")
            column = stream.read_all().column("name").cast(pa.large_string()).combine_chunks()
        # Before anything follows its own offsets.
        column.validate(full=True)
    except (pa.ArrowException, KeyError, OSError) as error:  # an OSError if it is cut short
        raise UnexpectedAnswer(f"the answer is no listing as an Arrow stream: {error}") from None
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.large_string())
    if column.null_count:
        raise UnexpectedAnswer("the answer is no listing: a name in it is null")
    return column


def details_of_arrow(body: bytes, schema: pa.Schema) -> pa.Table:
    """A whole Arrow stream of the columns of this schema, in its order. Raises :exc:`UnexpectedAnswer`."""
    try:
        with pa.ipc.open_stream(pa.BufferReader(body)) as stream:
            sent = stream.schema  # a server has an order of its own
            if sorted(sent.names) != sorted(schema.names) or any(
                not sent.field(field.name).equals(field) for field in schema
            ):
                raise UnexpectedAnswer("the answer is no listing with these details as an Arrow stream")
            table = stream.read_all().select(schema.names)
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise UnexpectedAnswer(f"the answer is no listing as an Arrow stream: {error}") from None
    if table.column("name").null_count:
        raise UnexpectedAnswer("the answer is no listing: a name in it is null")
    return table


def names_of_json(body: bytes) -> pa.LargeStringArray:
    """The texts of a JSON array. Raises :exc:`UnexpectedAnswer`."""
    text = body.strip()
    # As brokers write it, without white space and escapes: then the text between two quotes is a name.
    if text.startswith(b'["') and text.endswith(b'"]') and b"\\" not in text:
        inner = memoryview(text)[2:-2]
        whole = pa.Array.from_buffers(
            pa.large_binary(), 1, [None, pa.py_buffer(_offsets(len(inner))), pa.py_buffer(inner)]
        )
        try:
            names = pc.split_pattern(whole, '","').values.cast(pa.large_string())
        except pa.ArrowException as error:
            raise UnexpectedAnswer(f"the answer is no listing: {error}") from None
        if not pc.any(pc.match_substring(names, '"')).as_py():
            return names
    try:
        return pa.array(_texts(text), pa.large_string())
    except UnicodeError:  # half of a pair of escapes
        raise UnexpectedAnswer("the answer is no listing: a name in it is no Unicode") from None


def _offsets(end: int) -> bytes:
    return bytes(8) + end.to_bytes(8, "little")


def _texts(text: bytes) -> list[str]:
    try:
        names: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise UnexpectedAnswer("the answer is no listing: it is no JSON") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnexpectedAnswer("the answer is no listing: it is no JSON array of texts")
    return names
