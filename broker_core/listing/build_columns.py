"""Building the columns of a listing: sorting local names, leaving out what no client sees, encoding fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidListing, InvalidName
from broker_core.listing.fields_codec import binary_column, encode_fields
from broker_core.names import NON_PERSISTENT, PERSISTENT, NamespaceName
from broker_core.names.column_sort import sorted_rows
from broker_core.names.hash_order import hash_order_key, is_ascending
from broker_core.names.name_columns import as_column, check_local_names, column_data, system_topics, with_ends
from broker_core.names.partition_columns import partitioned_local_names

__all__ = [
    "Columns",
    "build_columns",
    "checked_local_names",
    "gathered",
    "row_type",
]

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """``fields``, ``joined``, ``matched`` of a :mod:`~broker_core.listing.listing`, and the order of the last."""

    fields: pa.LargeBinaryArray
    joined: pa.LargeBinaryArray
    matched: pa.LargeStringArray
    by_matched: _Array | None


def row_type(rows: int) -> Any:
    """The numpy type for positions in a listing of so many rows: as small as is safe."""
    return np.int32 if rows < 2**31 else np.int64


def gathered(data: pa.Buffer, offsets: _Array, rows: _Array) -> tuple[pa.Buffer, _Array]:
    """The bytes of ``rows`` of a column of bytes, and their offsets."""
    return column_data(binary_column(data, offsets).take(pa.array(rows)))


def checked_local_names(names: Any) -> pa.LargeStringArray:
    """A column of local names as ``large_string``; raises :exc:`InvalidListing` for the first that cannot be one."""
    column = as_column(names)
    try:
        check_local_names(column)
    except InvalidName as error:
        raise InvalidListing(str(error)) from None
    return column


def build_columns(
    namespace: NamespaceName,
    persistent: pa.LargeStringArray | None,
    non_persistent: pa.LargeStringArray | None,
) -> Columns:
    """The columns for local names of either domain, which are checked, in any order and perhaps some twice."""
    joined: list[pa.LargeStringArray] = []
    matched: list[pa.LargeStringArray] = []
    # In the order of the hash all of "non-persistent://" comes before all of "persistent://".
    for domain, names in ((NON_PERSISTENT, non_persistent), (PERSISTENT, persistent)):
        if names is not None and len(names):
            locals_, bases = _ordered(names, namespace, domain)
            joined.append(with_ends(locals_, f",{domain}://{namespace}/", ""))
            matched.append(with_ends(bases, f"{namespace}/", ""))
    every_joined, every_matched = _concat(joined), _concat(matched)
    order: _Array | None = None
    if not _is_sorted(every_matched):
        order = sorted_rows(every_matched).astype(row_type(len(every_matched)), copy=False)
        every_matched = every_matched.take(pa.array(order))
    return Columns(encode_fields(every_joined), every_joined.cast(pa.large_binary()), every_matched, order)


def _ordered(
    names: pa.LargeStringArray, namespace: NamespaceName, domain: str
) -> tuple[pa.LargeStringArray, pa.LargeStringArray]:
    """(local names, the same without partition suffix): in hash order, nothing twice, no system topics."""
    key = hash_order_key(names)
    if not is_ascending(key):
        names = names.take(pa.array(sorted_rows(key)))
        differs = pc.not_equal(names[:-1], names[1:])
        if differs.false_count:
            names = names.filter(pa.concat_arrays([pa.array([True]), differs]))
    bases = partitioned_local_names(names)
    hidden = system_topics(bases, namespace, domain)
    if hidden is not None:
        shown = pc.invert(hidden)
        names, bases = names.filter(shown), bases.filter(shown)
    return names, bases


def _is_sorted(column: pa.LargeStringArray) -> bool:
    return len(column) < 2 or bool(pc.all(pc.less_equal(column[:-1], column[1:])).as_py())


def _concat(columns: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    if not columns:
        return pa.array([], pa.large_string())
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)
