"""Checks of encoded names that a plugin or a file brings: every byte of the names that an answer sends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.errors import InvalidListing
from broker_core.listing.fields.fields_codec import binary_column, decode_fields, fields_fault
from broker_core.names import (
    NON_PERSISTENT,
    PERSISTENT,
    Mode,
    NamespaceName,
    hash_order_key,
    is_ascending,
    partitioned_local_names,
    split_full_names,
    system_topics,
)

__all__ = ["check_fields", "checked_column"]

_Array = np.ndarray[Any, Any]


def checked_column(data: pa.Buffer, offsets: _Array, rows: _Array | None = None) -> pa.LargeBinaryArray:
    """The column of the given rows (``None``: all), whose offsets are checked before Arrow follows them."""
    starts, ends = (offsets[:-1], offsets[1:]) if rows is None else (offsets[rows], offsets[rows + 1])
    if len(starts) and (int(starts.min()) < 0 or int(ends.max()) > data.size or bool((ends <= starts).any())):
        raise InvalidListing("the offsets of encoded names do not ascend within their bytes")
    if rows is None:
        return binary_column(data, offsets)
    sizes = ends - starts
    places = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    if not len(sizes):
        return pa.array([], pa.large_binary())
    # Gathered without Arrow, which would follow every offset of the column.
    at = np.repeat(starts - places[:-1], sizes) + np.arange(int(places[-1]))
    return binary_column(pa.py_buffer(np.frombuffer(data, np.uint8)[at]), places)


def check_fields(fields: pa.LargeBinaryArray, namespace: NamespaceName, mode: Mode) -> None:
    """Raise :exc:`InvalidListing` unless ``fields`` are encoded names of a listing of this namespace and mode."""
    if not len(fields):
        return
    fault = fields_fault(fields)
    if fault is not None:
        raise InvalidListing(f"encoded names of {namespace}: {fault}")
    try:
        names = decode_fields(fields)
    except pa.ArrowInvalid as error:
        raise InvalidListing(f"encoded names of {namespace} are no UTF-8: {error!s:.200}") from None
    if not is_ascending(hash_order_key(names)):
        raise InvalidListing(f"encoded names of {namespace} are not in the order of the hash, each once")
    for domain, locals_ in zip(
        (PERSISTENT, NON_PERSISTENT), split_full_names(names, namespace, mode), strict=True
    ):
        if len(locals_) and system_topics(partitioned_local_names(locals_), namespace, domain) is not None:
            raise InvalidListing(f"among the encoded names of {namespace} are system topics")
