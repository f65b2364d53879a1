"""A chunk of a listing as the columns of a file, and back, with the checks that checksums do not make.

==================  ================================================================================================
column              contents
==================  ================================================================================================
``fields``          the encoded names
``offsets``         where each begins, and where the last ends: int64, the first is 0
``forms``           what patterns match, in UTF-8 order; only if that is not the end of each field
``form_offsets``    where each of these begins: int64
``form_order``      the row of each: int32; only if it is not its own position
``codes N``         of the N-th property that selects: a code for each row, int32
``values N``        the texts that codes stand for
``value_ends N``    where each of these begins: int64
==================  ================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.listing import NO_VALUE, Chunk, PropertyCodes, SortedForms, TextCrc
from broker_core.names import DOMAINS, NamespaceName, column_data, hash_order_bytes
from broker_core.snapshots.stored.column_file import ColumnFile
from broker_core.snapshots.stored.file_errors import RefusedFile

__all__ = ["chunk_of", "file_of", "in_order"]

_Array = np.ndarray[Any, Any]
_TEXT: Final = pa.large_string()


def file_of(chunk: Chunk, property_keys: Sequence[str]) -> ColumnFile:
    """The file of a chunk. The forms that patterns match are stored if a reader could not take them from the names as
    they are.
    """
    columns: dict[str, Any] = {
        "fields": chunk.body(0, chunk.size),
        "offsets": _from_zero(chunk.field_offsets),
    }
    if not chunk.is_plain:
        forms = chunk.forms
        assert isinstance(forms, SortedForms)
        columns["forms"], columns["form_offsets"] = _text(forms.column)
        if forms.order is not None:
            columns["form_order"] = np.ascontiguousarray(forms.order, np.int32)
    for number, key in enumerate(property_keys):
        codes = chunk.properties.get(key) or PropertyCodes.none(chunk.size)
        columns[f"codes {number}"] = np.ascontiguousarray(codes.codes, np.int32)
        columns[f"values {number}"], columns[f"value_ends {number}"] = _text(codes.values)
    text = chunk.crc
    return ColumnFile(
        columns, chunk.size, {"domain": chunk.domain, "text_crc": text.crc, "text_size": text.size}
    )


def chunk_of(
    namespace: NamespaceName,
    property_keys: Sequence[str],
    rows: int,
    columns: Mapping[str, pa.Buffer],
    facts: Mapping[str, int | str],
) -> Chunk:
    """The chunk of a file. Raises :exc:`RefusedFile` for columns that no chunk has."""
    domain, crc, size = (facts.get(key) for key in ("domain", "text_crc", "text_size"))
    if not (
        isinstance(domain, str)
        and domain in DOMAINS
        and isinstance(crc, int)
        and isinstance(size, int)
        and 0 <= crc < 2**32
        and 0 < size < 2**48
    ):
        raise RefusedFile("its header has other facts than a chunk's")
    fields, offsets = _column(columns, "fields", "offsets", rows)
    if not rows or not bool((offsets[1:] > offsets[:-1]).all()):
        raise RefusedFile("names without bytes")
    properties = {}
    for number, key in enumerate(property_keys):
        properties[key] = _property(columns, number, rows)
    chunk = Chunk(namespace, domain, fields, offsets, properties)
    head = f"{domain}://{namespace}/".encode()
    if not (chunk.name(0).startswith(head) and chunk.name(rows - 1).startswith(head)):
        raise RefusedFile("its names are of another namespace")
    chunk.known_crc = TextCrc(crc, size)
    if "forms" in columns:
        chunk.know_forms(_forms(columns, rows))
    else:
        chunk.know_plain(True)
    return chunk


def in_order(chunks: Sequence[Chunk]) -> bool:
    """Whether the first and last names of chunks ascend from chunk to chunk, in the order of the hash."""
    return all(
        hash_order_bytes(before.name(before.size - 1)) < hash_order_bytes(after.name(0))
        for before, after in pairwise(chunks)
    )


def _from_zero(offsets: _Array) -> _Array:
    first = offsets.item(0)
    return np.ascontiguousarray(offsets if not first else offsets - first, np.int64)


def _text(column: pa.LargeStringArray) -> tuple[Any, _Array]:
    """(the bytes of a column of texts, the offset of each in them)."""
    data, offsets = column_data(column)
    return memoryview(data)[offsets.item(0) : offsets.item(-1)], _from_zero(offsets)


def _numbers(columns: Mapping[str, pa.Buffer], name: str, kind: Any, count: int | None = None) -> _Array:
    """A column of numbers: read-only, and ``count`` of them if given."""
    buffer = columns.get(name)
    if buffer is None or buffer.size % np.dtype(kind).itemsize:
        raise RefusedFile(f"the column {name!r} is missing, or is no column of {np.dtype(kind)}")
    numbers = np.frombuffer(buffer, kind)
    if count is not None and len(numbers) != count:
        raise RefusedFile(f"the column {name!r} has {len(numbers)} numbers in place of {count}")
    return numbers


def _column(
    columns: Mapping[str, pa.Buffer], text: str, ends: str, count: int | None = None
) -> tuple[pa.Buffer, _Array]:
    """(bytes, offsets) of a column of ``count`` texts; the offsets ascend, from 0 to the end of the bytes."""
    data = columns.get(text)
    offsets = _numbers(columns, ends, np.int64, None if count is None else count + 1)
    if data is None or not len(offsets):
        raise RefusedFile(f"the column {text!r} is missing")
    if offsets[0] or int(offsets[-1]) != data.size or not bool((offsets[1:] >= offsets[:-1]).all()):
        raise RefusedFile(f"the offsets of the column {text!r} do not ascend within its bytes")
    return data, offsets


def _texts(columns: Mapping[str, pa.Buffer], text: str, ends: str, count: int | None = None) -> Any:
    data, offsets = _column(columns, text, ends, count)
    column = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), data)
    try:
        column.validate(full=True)
    except pa.ArrowException:
        raise RefusedFile(f"the column {text!r} is no UTF-8") from None
    return column


def _property(columns: Mapping[str, pa.Buffer], number: int, rows: int) -> PropertyCodes:
    codes = _numbers(columns, f"codes {number}", np.int32, rows)
    values = _texts(columns, f"values {number}", f"value_ends {number}")
    if len(codes) and not (int(codes.min()) >= NO_VALUE and int(codes.max()) < len(values)):
        raise RefusedFile(f"a code of the property number {number} stands for nothing")
    return PropertyCodes(codes, values)


def _forms(columns: Mapping[str, pa.Buffer], rows: int) -> SortedForms:
    column = _texts(columns, "forms", "form_offsets", rows)
    if "form_order" not in columns:
        return SortedForms(column, None)
    order = _numbers(columns, "form_order", np.int32, rows)
    seen = np.zeros(rows, bool)
    if int(order.min()) >= 0 and int(order.max()) < rows:
        seen[order] = True
    if not seen.all():
        raise RefusedFile("the order of its forms is no permutation")
    return SortedForms(column, order)
