"""Building the chunks of a listing: sorting local names, leaving out system topics, encoding, cutting by size.

A domain's chunks are also built while its names are still being read (:class:`ChunkStream`): only the names of a few
chunks are held. Names come a block at a time, about in the order of UTF-8. Names that later ones may still precede have
to wait: the partitions of ``a`` sort after ``a-b``. UTF-16, the order of the hash, differs only for characters beyond
the BMP beside the last ones of the BMP: if both came, all names are sorted at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidListing, InvalidName
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_forms import are_plain
from broker_core.listing.chunks.property_codes import PropertyCodes
from broker_core.listing.fields.fields_codec import encode_fields
from broker_core.listing.fields.topic_field import topic_field
from broker_core.names import (
    NON_PERSISTENT,
    PARTITION_SUFFIX,
    PERSISTENT,
    Mode,
    NamespaceName,
    as_column,
    check_local_names,
    column_data,
    hash_order_bytes,
    hash_order_key,
    is_ascending,
    listed_topic,
    partitioned_local_names,
    sorted_rows,
    system_topic_mask,
    with_ends,
    without_ends,
)

__all__ = [
    "FEW_NAMES",
    "ChunkSize",
    "ChunkStream",
    "build_chunks",
    "checked_local_names",
    "chunk_size",
    "chunks_of_domain",
    "chunks_of_few",
    "cut_chunk",
    "cuts_by_size",
    "joined_chunks",
    "ordered_names",
]


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """Bytes of encoded names: of a new chunk (``made``), above which it is cut (``most``) or below joined (``least``).

    ``rows`` are the most topics. With what is derived from its names, a chunk takes up to four times the bytes.
    """

    made: int = 1024 * 1024
    most: int = 2 * 1024 * 1024
    least: int = 256 * 1024
    rows: int = 64 * 1024


_USED: Final = ChunkSize()


def chunk_size() -> ChunkSize:
    """The sizes in use."""
    return _USED


#: Names up to which :func:`chunks_of_few` is quicker than columns.
FEW_NAMES: Final = 64
#: Characters from this on sort otherwise in UTF-16 than in UTF-8, or may.
_MOVED: Final = "\ue000"


def checked_local_names(names: Any) -> pa.LargeStringArray:
    """A column of local names as ``large_string``; raises :exc:`InvalidListing` for the first invalid one."""
    column = as_column(names)
    try:
        check_local_names(column)
    except InvalidName as error:
        raise InvalidListing(str(error)) from None
    return column


def cuts_by_size(size: int, rows: int) -> list[int]:
    """Bounds of chunks of about as many rows each, for ``rows`` of ``size`` bytes: 0, ..., ``rows``."""
    wanted = chunk_size()
    if size <= wanted.most and rows <= wanted.rows:
        return [0, rows]
    parts = max(-(-size // wanted.made), -(-2 * rows // wanted.rows))
    cuts: list[int] = np.unique(np.linspace(0, rows, min(parts, rows) + 1).astype(np.int64)).tolist()
    return cuts


def build_chunks(
    namespace: NamespaceName,
    persistent: pa.LargeStringArray | None,
    non_persistent: pa.LargeStringArray | None,
    properties: Mapping[str, Mapping[str, pa.LargeStringArray]] | None = None,
) -> list[Chunk]:
    """The chunks of local names of either domain, which are checked, in any order, duplicates allowed.

    ``properties`` has for each domain the values (or nulls) of each key, in the order of its names, which then have no
    duplicates.
    """
    chunks: list[Chunk] = []
    # In the order of the hash all of "non-persistent://" comes before all of "persistent://".
    for domain, names in ((NON_PERSISTENT, non_persistent), (PERSISTENT, persistent)):
        if names is not None and len(names):
            chunks += chunks_of_domain(namespace, domain, names, (properties or {}).get(domain, {}))
    return chunks


def chunks_of_domain(
    namespace: NamespaceName,
    domain: str,
    names: pa.LargeStringArray,
    values: Mapping[str, pa.LargeStringArray],
) -> Iterator[Chunk]:
    """The chunks of local names of one domain, which are checked, in any order, duplicates allowed."""
    rows, ordered = ordered_names(names, namespace, domain)
    if rows is not None:
        values = {key: column.take(rows) for key, column in values.items()}
    yield from _chunks(namespace, domain, ordered, values)


def _chunks(
    namespace: NamespaceName, domain: str, names: pa.LargeStringArray, values: Mapping[str, Any]
) -> Iterator[Chunk]:
    """The chunks of local names that are in order."""
    head = f",{domain}://{namespace}/"
    _, offsets = column_data(names)
    cuts = cuts_by_size(int(offsets[-1] - offsets[0]) + (len(head) + 1) * len(names), len(names))
    for low, high in pairwise(cuts):
        if low == high:
            continue
        part = encode_fields(with_ends(names.slice(low, high - low), head, ""))
        codes = {key: PropertyCodes.of(column.slice(low, high - low)) for key, column in values.items()}
        data, ends = column_data(part)
        chunk = Chunk(namespace, domain, data, ends, codes)
        chunk.know_plain(are_plain(chunk.column(0, chunk.size)))
        yield from cut_chunk(chunk)  # names of very different sizes


def ordered_names(
    names: pa.LargeStringArray, namespace: NamespaceName, domain: str
) -> tuple[pa.Array[Any] | None, pa.LargeStringArray]:
    """The rows of local names (``None``: all) in hash order, without duplicates and system topics; and the names."""
    rows: pa.Array[Any] | None = None
    key = hash_order_key(names)
    if not is_ascending(key):
        rows = pa.array(sorted_rows(key))
        names = names.take(rows)
        differs = pc.not_equal(names[:-1], names[1:])
        if differs.false_count:
            once = pa.concat_arrays([pa.array([True]), differs])
            names, rows = names.filter(once), rows.filter(once)
    hidden = system_topic_mask(partitioned_local_names(names), namespace, domain)
    if hidden is not None:
        shown = pc.invert(hidden)
        rows = pa.array(np.flatnonzero(shown)) if rows is None else rows.filter(shown)
        names = names.filter(shown)
    return rows, names


def cut_chunk(chunk: Chunk) -> Sequence[Chunk]:
    """The chunk, or parts of it if it is too large; nothing if it is empty."""
    if not chunk.size:
        return ()
    cuts = cuts_by_size(chunk.fields_size, chunk.size)
    if len(cuts) == 2:
        return (chunk,)
    made: list[Chunk] = []
    for low, high in pairwise(cuts):
        offsets = chunk.field_offsets[low : high + 1] - chunk.field_offsets[low]
        fields = pa.py_buffer(bytes(chunk.body(low, high)))
        codes = {key: column.stretch(low, high) for key, column in chunk.properties.items()}
        part = Chunk(chunk.namespace, chunk.domain, fields, offsets, codes)
        if chunk.is_plain:
            part.know_plain(True)
        made += cut_chunk(part) if part.size > 1 and part.fields_size > chunk_size().most else (part,)
    return made


def joined_chunks(parts: Sequence[Chunk]) -> Chunk:
    """One chunk of the topics of several that follow each other, in memory of its own; they are checked."""
    first = parts[0]
    if len(parts) == 1:
        return first
    data, offsets = column_data(pa.concat_arrays([part.column(0, part.size) for part in parts]))
    keys = {key for part in parts for key in part.properties}
    codes = {
        key: PropertyCodes.joined(
            [part.properties.get(key) or PropertyCodes.none(part.size) for part in parts]
        )
        for key in keys
    }
    chunk = Chunk(first.namespace, first.domain, data, offsets, codes)
    if all(part.is_plain for part in parts):
        chunk.know_plain(True)
    return chunk


def chunks_of_few(
    namespace: NamespaceName,
    mode: Mode,
    names: Sequence[str],
    properties: Mapping[str, Sequence[str | None]],
) -> list[Chunk]:
    """The chunks that :func:`build_chunks` makes, of a few full names, one by one, and the values of their properties.

    Raises :exc:`~broker_core.errors.InvalidListing` for an invalid name, or one of another namespace or mode.
    """
    rows: dict[str, dict[bytes, int]] = {NON_PERSISTENT: {}, PERSISTENT: {}}
    for row, name in enumerate(names):
        topic = listed_topic(name, namespace, mode)
        if not topic.is_system:
            rows[topic.domain][hash_order_bytes(str(topic).encode())] = row
    chunks: list[Chunk] = []
    for domain, found in rows.items():
        if found:
            own = [row for _, row in sorted(found.items())]
            fields = [topic_field(names[row]) for row in own]
            codes = {
                key: PropertyCodes.of(pa.array([values[row] for row in own], pa.large_string()))
                for key, values in properties.items()
            }
            ends = np.array([0, *accumulate(map(len, fields))], np.int64)
            chunk = Chunk(namespace, domain, pa.py_buffer(b"".join(fields)), ends, codes)
            chunk.know_plain(
                not any(PARTITION_SUFFIX in names[row] or max(names[row]) >= _MOVED for row in own)
            )
            chunks.append(chunk)
    return chunks


_TEXT = pa.large_string()
#: Lead bytes of the last characters of the BMP, and of those beyond it: UTF-16 puts the latter first.
_LAST, _BEYOND = 0xEE, 0xF0


class ChunkStream:
    """The chunks of one domain, of checked local names: without system topics and duplicates.

    ``keys`` are the properties whose values (or nulls) each block has.
    """

    def __init__(self, namespace: NamespaceName, domain: str, keys: tuple[str, ...] = ()) -> None:
        self._namespace = namespace
        self._domain = domain
        self._head = len(f"{domain}://{namespace}/")
        self._names: list[pa.LargeStringArray] = []
        self._values: dict[str, list[pa.LargeStringArray]] = {key: [] for key in keys}
        self._waiting = 0  # about how many bytes they will be
        self._chunks: list[Chunk] = []
        self._has_last = self._has_beyond = False

    def add(
        self, names: pa.LargeStringArray, values: Mapping[str, pa.LargeStringArray], last: str | None
    ) -> None:
        """A block of names. All names of later blocks are greater than ``last``; ``None``: no block follows."""
        data, offsets = column_data(names)
        text = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])]
        if len(text) and int(text.max()) >= _LAST:
            self._has_beyond |= int(text.max()) >= _BEYOND
            self._has_last |= bool(((text >= _LAST) & (text < _BEYOND)).any())
        self._names.append(names)
        for key, waiting in self._values.items():
            waiting.append(values[key])
        self._waiting += len(text) + (self._head + 2) * len(names)
        if last is not None and not self._is_mixed and self._waiting >= chunk_size().most:
            self._build(last)

    def chunks(self) -> list[Chunk]:
        """The chunks of all names that were added."""
        if self._is_mixed:
            self._take_back()
        self._build(None)
        made = self._chunks
        if len(made) > 1 and made[-1].fields_size < chunk_size().least:
            end = made.pop()
            if made[-1].fields_size + end.fields_size <= chunk_size().most:
                end = joined_chunks([made.pop(), end])
            made.append(end)
        return made

    @property
    def _is_mixed(self) -> bool:
        """Whether names may come in another order than that of the hash."""
        return self._has_last and self._has_beyond

    def _build(self, last: str | None) -> None:
        """Make chunks of the waiting names up to ``last``."""
        if not self._names:
            return
        names = _joined(self._names)
        values = {key: _joined(parts) for key, parts in self._values.items()}
        self._names = []
        self._values = {key: [] for key in values}
        self._waiting = 0
        if last is not None:
            later = pc.greater(names, pa.scalar(last, _TEXT))
            if later.true_count:
                self._names = [names.filter(later)]
                self._values = {key: [column.filter(later)] for key, column in values.items()}
                self._waiting = self._names[0].nbytes + self._head * later.true_count
                now = pc.invert(later)
                names, values = (
                    names.filter(now),
                    {key: column.filter(now) for key, column in values.items()},
                )
        if len(names):
            self._chunks += chunks_of_domain(self._namespace, self._domain, names, values)

    def _take_back(self) -> None:
        """Take all chunks apart, so that their names wait again."""
        made, self._chunks = self._chunks, []
        self._names = [
            *(without_ends(chunk.names(0, chunk.size), self._head, 0) for chunk in made),
            *self._names,
        ]
        for key, waiting in self._values.items():
            self._values[key] = [*(chunk.properties[key].column() for chunk in made), *waiting]


def _joined(columns: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)
