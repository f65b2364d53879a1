"""The catalogue's details of topics (partitions, ids, properties, configs) as columns.

SQLite writes JSON, and Arrow's reader parses it, so that no Python object is made for a topic. A topic that is not in
the file has no row. The topics of a page are adjacent in the index, so they are read as a range; equal properties of
many topics are parsed once.
"""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from broker_core.compact_json import compact_json
from broker_core.listing import DETAIL_TYPES, TOPIC, Details
from broker_core.names import DOMAINS, NamespaceName, column_data, with_ends

__all__ = ["describe", "described_bytes", "listed_partitions"]

#: The pairs of each of several texts of properties.
_PAIRS: Final = (
    "SELECT CAST(group_concat(json_object('pairs', json((SELECT json_group_array(json_object('key', key, 'value',"
    " value)) FROM json_each(texts.value)))), char(10)) AS BLOB) FROM json_each(?) AS texts"
)
_PAIRS_SCHEMA: Final = pa.schema(
    [("pairs", pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))]
)


class _Column(NamedTuple):
    """A column that can be requested: its SQL, its type in JSON, and the function that makes it of the values read."""

    sql: str
    read: pa.DataType
    made: Callable[[sqlite3.Connection, Any], Any]


_OF: Final = " FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ? AND "
_NAMED: Final = "base IN (SELECT value FROM json_each(?))"
_BETWEEN: Final = "base BETWEEN ? AND ?"
#: A range is read if it has at most so many times as many topics as are requested.
_SPARSE: Final = 2
#: Up to so many ids, each is looked up in the index.
_FEW_IDS: Final = 10_000
#: More ids are searched among all topics, as hexadecimal in JSON.
_BY_ID: Final = "hex(topic_id) IN (SELECT value FROM json_each(?))"


def described_bytes(
    connection: sqlite3.Connection, namespace: NamespaceName, names: Any | None, ids: Any | None
) -> int:
    """About how many bytes :func:`describe` takes for the topics."""
    total = 0
    for code, condition, keys in _questions(connection, namespace, names, ids):
        query = (
            "SELECT total(length(base) + ifnull(length(properties), 0) + ifnull(length(configs), 0) + 128)"
            f" {_OF}{condition}"
        )
        total += int(connection.execute(query, (str(namespace), code, *keys)).fetchone()[0])
    return 8 * total


def describe(
    connection: sqlite3.Connection,
    namespace: NamespaceName,
    names: Any | None,
    ids: Any | None,
    wants: Collection[str],
) -> Details:
    """The details of topics by full name without partition suffix, or by id (Arrow columns, one of them ``None``)."""
    batches = [
        _read(connection, namespace, code, condition, keys, wants)
        for code, condition, keys in _questions(connection, namespace, names, ids)
    ]
    whole = pa.Table.from_batches(batches).combine_chunks()
    if names is not None and len(whole):  # what a range has between them
        requested = pc.is_in(whole[TOPIC], value_set=names)
        whole = whole if pc.all(requested).as_py() else whole.filter(requested).combine_chunks()
    if whole.num_rows:
        return Details(whole.to_batches()[0])
    nothing = [pa.array([], field.type) for field in whole.schema]
    return Details(pa.RecordBatch.from_arrays(nothing, schema=whole.schema))


def _questions(
    connection: sqlite3.Connection, namespace: NamespaceName, names: Any | None, ids: Any | None
) -> list[tuple[int, str, tuple[str | bytes, ...]]]:
    """The queries for each domain: its number, the condition, and its values."""
    if names is None:
        assert ids is not None
        wanted = ids.to_pylist()
        if len(wanted) <= _FEW_IDS:
            few = f"topic_id IN ({', '.join('?' * len(wanted))})"
            return [(code, few, tuple(wanted)) for code in range(len(DOMAINS))]
        keys = compact_json([each.hex().upper() for each in wanted])
        return [(code, _BY_ID, (keys,)) for code in range(len(DOMAINS))]
    requested: list[tuple[int, str, tuple[str | bytes, ...]]] = []
    for code, domain in enumerate(DOMAINS):
        prefix = f"{domain}://{namespace}/"
        own = names.filter(pc.starts_with(names, prefix))
        bases = pc.utf8_slice_codeunits(own, len(prefix))
        if len(bases) and (ends := _range(connection, namespace, code, bases)) is not None:
            requested.append((code, _BETWEEN, ends))
        else:
            requested.append((code, _NAMED, (compact_json(bases.to_pylist()),)))
    return requested


def _range(
    connection: sqlite3.Connection, namespace: NamespaceName, code: int, bases: Any
) -> tuple[str, str] | None:
    """The first and the last name, if there are not many others between them; Arrow and SQLite compare bytes."""
    ends = pc.min_max(bases).as_py()
    most = _SPARSE * len(bases)
    query = f"SELECT count(*) FROM (SELECT 1 {_OF}{_BETWEEN} LIMIT ?)"  # noqa: S608 - constants
    values = (str(namespace), code, ends["min"], ends["max"], most + 1)
    (count,) = connection.execute(query, values).fetchone()
    return None if count > most else (ends["min"], ends["max"])


def _read(
    connection: sqlite3.Connection,
    namespace: NamespaceName,
    code: int,
    condition: str,
    keys: tuple[str | bytes, ...],
    wants: Collection[str],
) -> pa.RecordBatch:
    wanted = {name: column for name, column in _COLUMNS.items() if name in wants}
    read = ["'base', base", *(f"'{name}', {column.sql}" for name, column in wanted.items())]
    query = f"SELECT CAST(group_concat(json_object({', '.join(read)}), char(10)) AS BLOB) {_OF}{condition}"
    (text,) = connection.execute(query, (str(namespace), code, *keys)).fetchone()
    schema = pa.schema([("base", pa.string()), *((name, column.read) for name, column in wanted.items())])
    table = _parsed(text, schema)
    columns: dict[str, Any] = {
        TOPIC: with_ends(_of(table, "base").cast(pa.large_string()), f"{DOMAINS[code]}://{namespace}/", "")
    }
    for name, column in wanted.items():
        columns[name] = column.made(connection, _of(table, name))
    return pa.RecordBatch.from_pydict(columns)


def _parsed(text: bytes | None, schema: pa.Schema) -> pa.Table:
    if text is None:
        return schema.empty_table()
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    blocks = pyarrow.json.ReadOptions(block_size=len(text) + 1)  # no text is cut
    return pyarrow.json.read_json(io.BytesIO(text), parse_options=options, read_options=blocks)


def _of(table: pa.Table, name: str) -> Any:
    column = table[name].combine_chunks()
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def listed_partitions(listed: Any) -> Any:
    """The number of partitions: the highest index, which ends the compact form, and one; 0 for a topic without any."""
    last = pc.struct_field(pc.extract_regex(listed, r"(?P<index>[0-9]+)$"), "index").cast(pa.int64())
    # A partition of index 2^31-1 makes one more than a column of details can hold; it is refused elsewhere.
    return pc.min_element_wise(pc.add(pc.coalesce(last, pa.scalar(-1, pa.int64())), 1), 2**31 - 1).cast(
        pa.int32()
    )


def _ids(texts: Any) -> Any:
    data, offsets = column_data(texts.cast(pa.large_string()))
    digits = bytes(memoryview(data)[int(offsets[0]) : int(offsets[-1])]).decode()
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(texts), [None, pa.py_buffer(bytes.fromhex(digits))]
    )


def _maps(connection: sqlite3.Connection, texts: Any) -> Any:
    """The properties of each topic, from their texts in JSON."""
    encoded = texts.dictionary_encode()
    (pairs,) = connection.execute(_PAIRS, (compact_json(encoded.dictionary.to_pylist()),)).fetchone()
    return _maps_of(_of(_parsed(pairs, _PAIRS_SCHEMA), "pairs")).take(encoded.indices)


def _maps_of(lists: Any) -> Any:
    pairs = lists.flatten()
    offsets = np.concatenate(([0], np.cumsum(pc.list_value_length(lists).to_numpy()))).astype(np.int32)
    return pa.MapArray.from_arrays(
        pa.array(offsets), pc.struct_field(pairs, "key"), pc.struct_field(pairs, "value")
    )


#: The columns by name; configs are those that were set for the topic itself.
_COLUMNS: Final = {
    "partitions": _Column("listed", pa.string(), lambda _, values: listed_partitions(values)),
    "topic_id": _Column("hex(topic_id)", pa.string(), lambda _, values: _ids(values)),
    "properties": _Column("ifnull(properties, '{}')", pa.string(), _maps),
    "configs": _Column("ifnull(configs, '{}')", pa.string(), _maps),
    "created": _Column("created", pa.int64(), lambda _, values: values.cast(DETAIL_TYPES["created"])),
}
