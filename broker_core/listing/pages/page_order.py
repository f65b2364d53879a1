"""The order of pages of a column of names (:mod:`broker_core.listing.pages.page`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names import hash_order_key, sorted_rows, split_partitions

__all__ = ["first_out_of_order", "in_page_order", "page_order", "topic_ends"]

_Array = np.ndarray[Any, Any]


def in_page_order(names: pa.LargeStringArray) -> pa.LargeStringArray:
    """Full names, each once, in the order of pages."""
    bases, numbers = split_partitions(names)
    order = page_order(hash_order_key(bases), numbers)
    return names if order is None else names.take(pa.array(order))


def first_out_of_order(names: pa.LargeStringArray) -> int | None:
    """The row of the first full name that is followed by a wrong one; ``None`` if all are in order, each once."""
    bases, numbers = split_partitions(names)
    ascends = _ascends(*_neighbours(hash_order_key(bases)), numbers)
    return None if ascends.all() else int(np.argmin(ascends))


def page_order(key: pa.LargeBinaryArray, numbers: _Array | None) -> _Array | None:
    """The rows of names in the order of pages (int64); ``None`` if they are in that order already, each once.

    ``key`` is the :func:`~broker_core.names.hash_order.hash_order_key` of their topics, ``numbers`` the number of each
    partition (``None``: no name is one), as :func:`~broker_core.names.name_columns.split_partitions` gives it.
    """
    before, same = _neighbours(key)
    if _ascends(before, same, numbers).all():
        return None
    if (before | same).all():  # the names of each topic are together, as a rule
        order, behind = np.arange(len(key)), before
    else:
        order = sorted_rows(key)
        behind, _ = _neighbours(key.take(pa.array(order)))
    if numbers is None:
        return order
    topic = np.concatenate(([0], np.cumsum(behind)))
    ordered: _Array = order[np.lexsort((numbers[order], topic))]
    return ordered


def topic_ends(topics: pa.LargeBinaryArray | pa.LargeStringArray) -> _Array:
    """The last row of each run of equal values (int64)."""
    if not len(topics):
        return np.zeros(0, np.int64)
    differs = pc.not_equal(topics[:-1], topics[1:]).to_numpy(zero_copy_only=False)
    return np.append(np.flatnonzero(differs), len(topics) - 1)


def _neighbours(key: pa.LargeBinaryArray) -> tuple[_Array, _Array]:
    """For each value but the last, whether it is less than the next one, and whether it is equal to it."""
    if len(key) < 2:
        return np.ones(0, bool), np.zeros(0, bool)
    less: _Array = pc.less(key[:-1], key[1:]).to_numpy(zero_copy_only=False)
    if less.all():
        return less, ~less
    return less, pc.equal(key[:-1], key[1:]).to_numpy(zero_copy_only=False)


def _ascends(before: _Array, same: _Array, numbers: _Array | None) -> _Array:
    """For each name but the last, whether the next one may follow it."""
    return before if numbers is None else before | (same & (numbers[:-1] < numbers[1:]))
