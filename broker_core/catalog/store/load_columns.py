"""Reader of whole namespaces as columns: SQLite joins the texts, so that no Python object is made for a topic.

``group_concat`` gives the names of many topics as one string with a NUL between (no name has one), and the places of
the NULs are the offsets of an Arrow column. Topics that are listed by their plain name are the usual case; if there are
partitions, the compact forms of :mod:`~broker_core.names.listed_names` come the same way and are expanded by
repeating
and joining columns. Properties come as JSON texts, of which Arrow's own reader parses the distinct ones. A few texts
are parsed one by one: starting Arrow's reader takes as long as some hundred of them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from broker_core.names import PARTITION_SUFFIX, Array

__all__ = ["LoadedNames", "expand_listed", "load_names", "read_names", "split_texts", "topic_blocks"]

#: Topics read at a time, so that no step holds the interpreter for long, nor much memory.
_BLOCK: Final = 25_000
_TEXT: Final = pa.large_string()
#: So many different texts of properties, at most, are read one by one.
_FEW_TEXTS: Final = 64

_LAST: Final = (
    "SELECT base FROM topics WHERE namespace = ? AND domain = ? AND base > ? ORDER BY base LIMIT 1 OFFSET ?"
)
# All aggregates of one query see the rows in the same order, so their columns belong together, whatever the order is.
_NAMES: Final = (
    "SELECT CAST(group_concat(base, char(0)) AS BLOB), total(listed <> '*')"
    " FROM topics WHERE namespace = ? AND domain = ? AND base > ? AND base <= ?"
)
_ALL: Final = (
    "SELECT CAST(group_concat(base, char(0)) AS BLOB), CAST(group_concat(listed, char(0)) AS BLOB),"
    " CAST(group_concat(ifnull(properties, '{}'), char(0)) AS BLOB)"
    " FROM topics WHERE namespace = ? AND domain = ? AND base > ? AND base <= ?"
)


@dataclass(frozen=True, slots=True)
class LoadedNames:
    """Local names as they are listed, in no particular order, and for each property key the value of each (or null)."""

    names: pa.LargeStringArray
    properties: dict[str, pa.LargeStringArray]


def load_names(
    connection: sqlite3.Connection, namespace: int, domain: int, property_keys: Sequence[str] = ()
) -> LoadedNames:
    """All topics of one domain of a namespace (both by their numbers in the file), within the caller's transaction."""
    blocks = [block for block, _ in read_names(connection, namespace, domain, property_keys)]
    return LoadedNames(
        _concat([block.names for block in blocks]),
        {key: _concat([block.properties[key] for block in blocks]) for key in property_keys},
    )


def read_names(
    connection: sqlite3.Connection, namespace: int, domain: int, property_keys: Sequence[str] = ()
) -> Iterator[tuple[LoadedNames, str | None]]:
    """The topics of a domain, a block at a time in the order of UTF-8, each with the greatest topic of the block.

    The names of all later blocks are greater than that topic, which is ``None`` for the last block.
    """
    for part, last in topic_blocks(connection, namespace, domain):
        joined, others = (None, True) if property_keys else connection.execute(_NAMES, part).fetchone()
        if joined is not None and not others:
            yield LoadedNames(split_texts(joined), {}), last
        elif others:
            del joined
            row = connection.execute(_ALL, part).fetchone()
            if row[0] is not None:
                yield LoadedNames(*_expanded(row, property_keys)), last
            del row


def topic_blocks(
    connection: sqlite3.Connection, namespace: int, domain: int
) -> Iterator[tuple[tuple[int, int, str, str], str | None]]:
    """The blocks of a domain's topics in the order of UTF-8, each with its greatest topic, ``None`` for the last block.

    A block is the parameters of ``namespace = ? AND domain = ? AND base > ? AND base <= ?``.
    """
    after = ""
    while True:
        row = connection.execute(_LAST, (namespace, domain, after, _BLOCK - 1)).fetchone()
        last = row[0] if row else None
        # Up to the last topic of the block, or to a text that sorts after all names.
        yield (namespace, domain, after, last or "\U0010ffff" * 8192), last
        if last is None:
            break
        after = last


def _expanded(
    row: tuple[bytes, bytes, bytes], property_keys: Sequence[str]
) -> tuple[pa.LargeStringArray, dict[str, pa.LargeStringArray]]:
    """The names that a block of topics is listed by, and the properties of each name."""
    names, topic_of = expand_listed(split_texts(row[0]), split_texts(row[1]))
    if not property_keys:
        return names, {}
    texts = split_texts(row[2]).dictionary_encode()
    text_of = texts.indices if topic_of is None else texts.indices.take(pa.array(topic_of))
    return names, {
        key: column.take(text_of) for key, column in _values(texts.dictionary, property_keys).items()
    }


def expand_listed(
    bases: pa.LargeStringArray, listed: pa.LargeStringArray
) -> tuple[pa.LargeStringArray, Array | None]:
    """The names of topics (by base name and compact form), and for each name the row of its topic.

    ``None`` for the rows if each topic has only its plain name.
    """
    forms = listed.dictionary_encode()
    if forms.dictionary.to_pylist() == ["*"]:
        return bases, None
    # The meaning of each distinct form: the indices of all forms one after the other, -1 for the plain name.
    indices, form_starts = _parsed(forms.dictionary)
    form_of: Array = forms.indices.to_numpy()
    counts = np.diff(form_starts)[form_of]
    topic_of = np.repeat(np.arange(len(bases)), counts)
    within = np.arange(len(topic_of)) - np.repeat(np.cumsum(counts) - counts, counts)
    index = indices[np.repeat(form_starts[form_of], counts) + within]
    distinct, suffix_of = np.unique(index, return_inverse=True)
    suffixes = pc.binary_join_element_wise(
        pa.scalar(PARTITION_SUFFIX, _TEXT), pa.array(distinct).cast(_TEXT), pa.scalar("", _TEXT)
    )
    suffixes = pc.if_else(pa.array(distinct < 0), pa.scalar("", _TEXT), suffixes)
    names = pc.binary_join_element_wise(
        bases.take(pa.array(topic_of)), suffixes.take(pa.array(suffix_of)), pa.scalar("", _TEXT)
    )
    return names, topic_of


def _parsed(forms: pa.LargeStringArray) -> tuple[Array, Array]:
    """(indices of all forms, bounds of each form's indices), parsed as columns: there may be many forms."""
    parts = pc.split_pattern(forms, ",")
    pieces = parts.flatten()
    plain = pc.equal(pieces, "*").to_numpy(zero_copy_only=False)
    bounds = pc.split_pattern(
        pc.if_else(pa.array(plain), pa.scalar("-1", _TEXT), pieces), "-", max_splits=1, reverse=True
    )
    offsets = bounds.offsets.to_numpy()
    texts = bounds.flatten()
    first_text = texts.take(pa.array(offsets[:-1]))
    last = texts.take(pa.array(offsets[1:] - 1)).cast(pa.int64()).to_numpy().copy()
    # "-1" stands for the plain name, and was split before its digit as well: "", "1".
    first = pc.if_else(pa.array(plain), pa.scalar("0", _TEXT), first_text).cast(pa.int64()).to_numpy().copy()
    first[plain] = last[plain] = -1
    counts = last - first + 1
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    ends = np.concatenate(([0], np.cumsum(counts)))
    return np.repeat(first, counts) + within, ends[parts.offsets.to_numpy()]


def _values(texts: pa.LargeStringArray, property_keys: Sequence[str]) -> dict[str, pa.LargeStringArray]:
    """The value of each key in each JSON text, null if it has none."""
    if len(texts) <= _FEW_TEXTS:
        read = [json.loads(text) for text in texts.to_pylist()]
        return {key: pa.array([each.get(key) for each in read], _TEXT) for key in property_keys}
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts.cast(pa.string()))
    source = pa.BufferReader(pc.binary_join(whole, "\n")[0].as_buffer())  # JSON leaves no line feed unescaped
    table = pyarrow.json.read_json(
        source,
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=pa.schema([(key, pa.string()) for key in property_keys]),
            unexpected_field_behavior="ignore",
        ),
    )
    return {key: _concat([chunk.cast(_TEXT) for chunk in table[key].chunks]) for key in property_keys}


def split_texts(joined: bytes) -> pa.LargeStringArray:
    """Texts separated by NUL as a column."""
    data = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(data == 0)
    offsets = np.empty(len(ends) + 2, np.int64)
    offsets[0] = 0
    offsets[1:-1] = ends - np.arange(len(ends))
    offsets[-1] = len(data) - len(ends)
    texts = data[data != 0] if len(ends) else data
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(texts))


def _concat(columns: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    if not columns:
        return pa.array([], _TEXT)
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)
