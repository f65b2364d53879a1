"""Partition suffixes of a column of local names: :func:`broker_core.names.partition_index` for all of them at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names.domain import NON_PERSISTENT, PERSISTENT
from broker_core.names.name_columns import column_data, contains, with_ends, without_ends
from broker_core.names.namespace_name import NamespaceName
from broker_core.names.partition_suffix import MAX_PARTITION_INDEX, PARTITION_SUFFIX

__all__ = ["matched_forms", "partitioned_local_names", "split_partitions"]

_SUFFIX: Final = np.frombuffer(PARTITION_SUFFIX.encode(), np.uint8)
_MOST_DIGITS: Final = len(str(MAX_PARTITION_INDEX))
_Array = np.ndarray[Any, Any]


def partitioned_local_names(column: pa.LargeStringArray) -> pa.LargeStringArray:
    """Each local name without its partition suffix, if it has one; the column itself if none has."""
    if not contains(column, PARTITION_SUFFIX):
        return column
    data, offsets = column_data(column)
    rows, sizes = _suffixes(np.frombuffer(data, np.uint8), offsets)
    return _without(column, rows, sizes)


def split_partitions(column: pa.LargeStringArray) -> tuple[pa.LargeStringArray, _Array | None]:
    """Full names without their partition suffix, and the number of each partition (int32, -1 for others).

    ``None`` in place of the numbers if no name is a partition.
    """
    if not contains(column, PARTITION_SUFFIX):
        return column, None
    buffer, offsets = column_data(column)
    data = np.frombuffer(buffer, np.uint8)
    rows, sizes = _suffixes(data, offsets)
    # The whole local name is not a suffix.
    named = data[offsets[rows + 1] - sizes - 1] != ord("/")
    rows, sizes = rows[named], sizes[named]
    if not len(rows):
        return column, None
    numbers = np.full(len(column), -1, np.int32)
    numbers[rows] = _numbers(data, offsets[rows + 1], sizes - len(_SUFFIX))
    return _without(column, rows, sizes), numbers


def _without(column: pa.LargeStringArray, rows: _Array, sizes: _Array) -> pa.LargeStringArray:
    """The column with the ends of some rows, of the given sizes, removed."""
    if not len(rows):
        return column
    data, offsets = column_data(column)
    # Twice as many values over the same memory, names and suffixes alternating, of which the names are taken.
    edges = np.repeat(offsets, 2)[:-1]
    edges[2 * rows + 1] = offsets[rows + 1] - sizes
    untouched = np.ones(len(column), bool)
    untouched[rows] = False
    edges[1::2][untouched] = offsets[1:][untouched]
    halves = pa.LargeStringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), data)
    return halves.take(pa.array(np.arange(0, len(edges) - 1, 2)))


def matched_forms(names: pa.LargeStringArray, namespace: NamespaceName) -> pa.LargeStringArray:
    """The forms for patterns of a namespace's full names, in the order of the hash: non-persistent ones first."""
    forms: list[pa.LargeStringArray] = []
    others = 0
    if len(names) and names[0].as_py().startswith(NON_PERSISTENT):
        others = pc.sum(pc.starts_with(names, NON_PERSISTENT)).as_py()
    for domain, part in ((NON_PERSISTENT, names[:others]), (PERSISTENT, names[others:])):
        if len(part):
            locals_ = without_ends(part, len(f"{domain}://{namespace}/"), 0)
            forms.append(with_ends(partitioned_local_names(locals_), f"{namespace}/", ""))
    if not forms:
        return pa.array([], pa.large_string())
    return forms[0] if len(forms) == 1 else pa.concat_arrays(forms)


def _suffixes(data: _Array, offsets: _Array) -> tuple[_Array, _Array]:
    """The rows that have a partition suffix, and the bytes that it takes in each."""
    starts, ends = offsets[:-1], offsets[1:]
    digits = np.zeros(len(starts), np.int8)
    rows = np.flatnonzero(ends - starts > len(_SUFFIX) + 1)  # a name is left, and a digit
    # From the end on, one digit a round, over the names that had only digits so far.
    for place in range(1, _MOST_DIGITS + 2):
        if not len(rows):
            break
        at = ends[rows] - place
        rows = rows[_is_digit(data[at]) & (at > starts[rows] + len(_SUFFIX))]
        digits[rows] += 1
    rows = np.flatnonzero((digits > 0) & (digits <= _MOST_DIGITS))
    index_at = ends[rows] - digits[rows]
    for place in range(-1, -len(_SUFFIX) - 1, -1):
        has = data[index_at + place] == _SUFFIX[place]
        rows, index_at = rows[has], index_at[has]
    canonical = (data[index_at] != ord("0")) | (digits[rows] == 1)
    longest = digits[rows] == _MOST_DIGITS
    ends_of = index_at[longest] + _MOST_DIGITS
    canonical[longest] &= _numbers(data, ends_of, digits[rows][longest]) <= MAX_PARTITION_INDEX
    return rows[canonical], digits[rows[canonical]] + len(_SUFFIX)


def _is_digit(byte: _Array) -> _Array:
    result: _Array = (byte >= ord("0")) & (byte <= ord("9"))
    return result


def _numbers(data: _Array, ends: _Array, digits: _Array) -> _Array:
    """The numbers that end before some places, each with so many digits."""
    value = np.zeros(len(ends), np.int64)
    for place in range(1, _MOST_DIGITS + 1):
        rows = np.flatnonzero(digits >= place)
        if not len(rows):
            break
        value[rows] += (data[ends[rows] - place] - np.int64(ord("0"))) * 10 ** (place - 1)
    return value
