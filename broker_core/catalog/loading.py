"""Reading a whole namespace as columns: SQLite joins the texts, so that no Python object is made for a topic.

``group_concat`` gives all base names as one string and their lengths as another; numpy turns the lengths into offsets,
and the two are an Arrow column. Names of partitions are made from the few distinct forms of ``listed`` by repeating and
joining columns.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.catalog.listed import Listed
from broker_core.names import PARTITION_SUFFIX

__all__ = ["LoadedNames", "load_names"]

#: Topics read at a time: SQLite's strings end at a gigabyte.
_CHUNK: Final = 500_000
_TEXT: Final = pa.large_string()

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class LoadedNames:
    """Local names as they are listed, in no particular order, and for each property key the value of each (or null)."""

    names: pa.LargeStringArray
    properties: dict[str, pa.LargeStringArray]


def load_names(
    connection: sqlite3.Connection, namespace: int, domain: int, property_keys: Sequence[str] = ()
) -> LoadedNames:
    """All topics of one domain of a namespace (both by their numbers in the file)."""
    columns = "".join(f", {_property(key)} AS p{index}" for index, key in enumerate(property_keys))
    joined = "".join(
        f", CAST(group_concat(ifnull(p{index}, ''), '') AS BLOB)"
        f", CAST(group_concat(ifnull(length(CAST(p{index} AS BLOB)), -1), ',') AS BLOB)"
        for index in range(len(property_keys))
    )
    sql = (
        "SELECT count(*), CAST(group_concat(base, '') AS BLOB),"  # noqa: S608  # our own names and numbers
        " CAST(group_concat(length(CAST(base AS BLOB)), ',') AS BLOB),"
        f" CAST(group_concat(CASE listed WHEN '*' THEN '' ELSE listed END, ';') AS BLOB){joined}"
        f" FROM (SELECT base, listed{columns} FROM topics WHERE namespace = ? AND domain = ? AND base > ?"
        f" ORDER BY base LIMIT {_CHUNK})"
    )
    paths = [_argument(key) for key in property_keys]
    names: list[pa.LargeStringArray] = []
    properties: list[list[pa.LargeStringArray]] = [[] for _ in property_keys]
    after = ""
    while True:
        row = connection.execute(sql, (*paths, namespace, domain, after)).fetchone()
        if not row[0]:
            break
        bases = _column(row[1], _numbers(row[2]))
        after = bases[-1].as_py()
        values = [_column(row[4 + 2 * i], _numbers(row[5 + 2 * i])) for i in range(len(property_keys))]
        expanded, topic_of = _expanded(bases, row[3])
        names.append(expanded)
        for index, column in enumerate(values):
            properties[index].append(column if topic_of is None else column.take(pa.array(topic_of)))
        if row[0] < _CHUNK:
            break
    return LoadedNames(
        _concat(names), {key: _concat(parts) for key, parts in zip(property_keys, properties, strict=True)}
    )


def _property(key: str) -> str:
    if '"' in key:  # a path cannot name it
        return "(SELECT value FROM json_each(properties) WHERE key = ?)"
    return "json_extract(properties, ?)"


def _argument(key: str) -> str:
    return key if '"' in key else f'$."{key}"'


def _numbers(text: bytes) -> _Array:
    return np.fromstring(text.decode("ascii"), dtype=np.int64, sep=",")


def _column(data: bytes, sizes: _Array) -> pa.LargeStringArray:
    """Texts of these sizes one behind the other; a size of -1 is a null."""
    missing = sizes < 0
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.where(missing, 0, sizes), out=offsets[1:])
    column = pa.LargeStringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(data))
    if not missing.any():
        return column
    return pc.if_else(pa.array(missing), pa.scalar(None, _TEXT), column)


def _concat(columns: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    if not columns:
        return pa.array([], _TEXT)
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def _expanded(bases: pa.LargeStringArray, listed: bytes) -> tuple[pa.LargeStringArray, _Array | None]:
    """The names that the topics are listed by, and the topic of each name (``None``: each topic has its own name)."""
    if not listed.strip(b";"):
        return bases, None
    forms = pc.split_pattern(pa.array([listed.decode("ascii")], _TEXT), ";").flatten().dictionary_encode()
    codes = forms.indices.to_numpy()
    indices_of = [
        np.array([-1, *parsed.indices()] if parsed.plain else list(parsed.indices()), np.int64)
        for parsed in (Listed.parse(form or "*") for form in forms.dictionary.to_pylist())
    ]
    counts = np.array([len(indices) for indices in indices_of])
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    per_topic = counts[codes]
    topic_of = np.repeat(np.arange(len(bases)), per_topic)
    first_name = np.cumsum(per_topic) - per_topic
    within = np.arange(len(topic_of)) - np.repeat(first_name, per_topic)
    index = np.concatenate(indices_of)[np.repeat(starts[codes], per_topic) + within]
    numbered = pc.binary_join_element_wise(
        pa.scalar(PARTITION_SUFFIX, _TEXT), pa.array(index).cast(_TEXT), pa.scalar("", _TEXT)
    )
    suffix = pc.if_else(pa.array(index < 0), pa.scalar("", _TEXT), numbered)
    names = pc.binary_join_element_wise(bases.take(pa.array(topic_of)), suffix, pa.scalar("", _TEXT))
    return names, topic_of
