"""Masks of the topics of a table that a selection of names shows; kept with the table, for all equal selections.

Plugins' masks judge names, of which a topic with partitions has many.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing import RowsKey, Selection, TopicTable, rows_key_of
from broker_core.names import PERSISTENT, NamespaceName, partitioned_local_names, without_ends
from broker_core.service.visible_topics import VisibleTopics, names_of

__all__ = ["SelectionMasks", "local_names"]

_Array = np.ndarray[Any, Any]
#: Masks of a table that are kept, of a bit for each topic: the permits of its chunks count them before they are made.
_KEPT: Final = 32


class SelectionMasks:
    """Masks by selection, for any thread. A selection is known by its rows: a table belongs to one listing."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[TopicTable, OrderedDict[RowsKey, _Array]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, table: TopicTable, selection: Selection) -> VisibleTopics:
        """The topics of a table with a name in ``selection``, which is of the table's listing."""
        key = rows_key_of(selection)
        with self._lock:
            kept = self._kept.setdefault(table, OrderedDict())
            packed = kept.get(key)
            if packed is not None:
                kept.move_to_end(key)
        if packed is None:
            packed = np.packbits(_marks(table, selection))
            with self._lock:
                kept[key] = packed
                if len(kept) > _KEPT:
                    kept.popitem(last=False)
        return VisibleTopics(table, _by_chunk(table, packed))


def local_names(names: pa.LargeStringArray, namespace: NamespaceName) -> pa.LargeStringArray:
    """Full names of persistent topics without the namespace."""
    return without_ends(names, len(f"{PERSISTENT}://{namespace}/"), 0)


def _marks(table: TopicTable, selection: Selection) -> _Array:
    names = local_names(selection.names, selection.listing.namespace)
    bases = partitioned_local_names(names).cast(pa.large_binary())
    marks: _Array = pc.is_in(names_of(table), value_set=bases.unique()).to_numpy(zero_copy_only=False)
    return marks


def _by_chunk(table: TopicTable, packed: _Array) -> Sequence[_Array]:
    if not table.chunks:
        return []
    marks = np.unpackbits(packed, count=table.size).view(np.bool_)
    return np.split(marks, np.cumsum([len(chunk) for chunk in table.chunks])[:-1])
