"""Reading the topics of a namespace as a table by name: SQLite joins the texts, and kernels take them apart."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.catalog.store.load_columns import split_texts, topic_blocks
from broker_core.catalog.topic_details import listed_partitions
from broker_core.kafka import legal_names
from broker_core.listing import TopicTable
from broker_core.names import DOMAINS, PERSISTENT, NamespaceName, system_topics

__all__ = ["load_topic_table"]

_DOMAIN: Final = DOMAINS.index(PERSISTENT)
# All aggregates of one query see the rows in the same order, so their columns belong together, whatever the order is.
_TOPICS: Final = (
    "SELECT CAST(group_concat(base, char(0)) AS BLOB), CAST(group_concat(listed, char(0)) AS BLOB),"
    " group_concat(hex(topic_id), '') FROM topics WHERE namespace = ? AND domain = ? AND base > ? AND base <= ?"
)


def load_topic_table(connection: sqlite3.Connection, namespace: NamespaceName) -> TopicTable:
    """All persistent topics except those that listings leave out; ``connection`` is within a transaction."""
    row = connection.execute("SELECT id FROM namespaces WHERE name = ?", (str(namespace),)).fetchone()
    names = [pa.array([], pa.large_string())]
    partitions = [np.zeros(0, np.int32)]
    ids = [b""]
    for part, _ in () if row is None else topic_blocks(connection, row[0], _DOMAIN):
        bases, listed, some_ids = connection.execute(_TOPICS, part).fetchone()
        if bases is not None:
            names.append(split_texts(bases))
            partitions.append(_partitions(split_texts(listed)))
            ids.append(bytes.fromhex(some_ids))
    whole = pa.concat_arrays(names)
    ids_of = _ids(b"".join(ids))
    counts = np.concatenate(partitions)
    dropped = system_topics(whole, namespace, PERSISTENT)
    if dropped is not None:
        kept = pc.invert(dropped)
        whole, ids_of = whole.filter(kept), ids_of.filter(kept)
        counts = counts[kept.to_numpy(zero_copy_only=False)]
    return TopicTable.of_columns(whole.cast(pa.large_binary()), counts, ids_of, legal_names)


def _partitions(listed: pa.LargeStringArray) -> np.ndarray[Any, Any]:
    forms = listed.dictionary_encode()
    of_form = listed_partitions(forms.dictionary).to_numpy(zero_copy_only=False)
    found: np.ndarray[Any, Any] = of_form[forms.indices.to_numpy()]
    return found


def _ids(data: bytes) -> pa.LargeBinaryArray:
    offsets = np.arange(len(data) // 16 + 1, dtype=np.int64) * 16
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
