"""The tables of topics that belong to snapshots: each has exactly the topics of one listing.

The newest table of a namespace is kept, and moved by the change log to the version of the requested listing; if the log
does not reach back, the topics are read anew.

For that SQLite joins the texts, and kernels take them apart.
"""

from __future__ import annotations

import asyncio
import sqlite3
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.access import Asker
from broker_core.catalog.catalog_errors import reading_catalog
from broker_core.catalog.snapshots.recent_changes import KeptSnapshots
from broker_core.catalog.store.load_columns import split_texts, topic_blocks
from broker_core.catalog.store.log_rows import LogSpan, read_span, read_version
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_details import listed_partitions
from broker_core.change_log import CatalogVersion, Gap
from broker_core.concurrency import in_thread
from broker_core.kafka import legal_names
from broker_core.listing import Listing, TableChange, TopicTable
from broker_core.names import DOMAINS, PERSISTENT, ListedNames, NamespaceName, system_topic_mask
from broker_core.snapshots import Snapshot

__all__ = ["TopicTables", "load_topic_table"]


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
            partitions.append(_partition_counts(split_texts(listed)))
            ids.append(bytes.fromhex(some_ids))
    whole = pa.concat_arrays(names)
    ids_of = _ids_column(b"".join(ids))
    counts = np.concatenate(partitions)
    dropped = system_topic_mask(whole, namespace, PERSISTENT)
    if dropped is not None:
        kept = pc.invert(dropped)
        whole, ids_of = whole.filter(kept), ids_of.filter(kept)
        counts = counts[kept.to_numpy(zero_copy_only=False)]
    return TopicTable.of_columns(whole.cast(pa.large_binary()), counts, ids_of, legal_names)


def _partition_counts(listed: pa.LargeStringArray) -> np.ndarray[Any, Any]:
    forms = listed.dictionary_encode()
    of_form = listed_partitions(forms.dictionary).to_numpy(zero_copy_only=False)
    found: np.ndarray[Any, Any] = of_form[forms.indices.to_numpy()]
    return found


def _ids_column(data: bytes) -> pa.LargeBinaryArray:
    offsets = np.arange(len(data) // 16 + 1, dtype=np.int64) * 16
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


#: Namespaces whose newest table is kept.
_KEPT: Final = 64
#: A change takes as long as reading so many topics.
_CHANGED_PART: Final = 8
_MANY: Final = 1000
_NOTHING: Final = TopicTable(())
#: The columns of the log that a table needs.
_COLUMNS: Final = "base, listed_before, listed_after, topic_id"
_PERSISTENT_TOPICS: Final = f"AND domain = {DOMAINS.index(PERSISTENT)}"


class _Versioned(NamedTuple):
    version: CatalogVersion
    table: TopicTable


class TopicTables:
    """Tables by their listing. Made and used on one event loop.

    Tables and their cached encodings have permits of the snapshots' budget, like the listings of ``kept``.
    """

    lister: Final = "catalog"

    def __init__(self, catalog: SqliteCatalog, kept: KeptSnapshots) -> None:
        self._kept = kept
        kept.on_let_go.append(self._let_go)
        self._catalog = catalog
        self._tables: weakref.WeakKeyDictionary[Listing, _Versioned] = weakref.WeakKeyDictionary()
        self._newest: OrderedDict[NamespaceName, _Versioned] = OrderedDict()
        self._reads: dict[tuple[Listing, CatalogVersion], asyncio.Task[tuple[TopicTable, bool] | None]] = {}

    def known(self, listing: Listing) -> tuple[TopicTable, bool] | None:
        """The result of :meth:`of`, if its table is kept.

        Several versions may have one listing: a topic that is deleted and created again between two has another id.
        """
        if not len(listing):
            return _NOTHING, True
        found, snapshot = self._tables.get(listing), self._snapshot_of(listing)
        if found is None or snapshot is None or not found.version.same_state(snapshot.version):
            return None
        return found.table, True

    async def of(self, listing: Listing) -> tuple[TopicTable, bool] | None:
        """The table of a listing of persistent topics, and whether it is kept under permits of its own.

        ``None`` if the namespace has changed since it was listed: list it again. Raises
        :exc:`~broker_core.errors.ListingFailed`.
        """
        found, snapshot = self.known(listing), self._snapshot_of(listing)
        if found is not None or snapshot is None:
            return found
        key = (listing, snapshot.version)
        read = self._reads.get(key)
        if read is None:
            read = asyncio.get_running_loop().create_task(self._made(snapshot))
            self._reads[key] = read
            read.add_done_callback(lambda _: self._reads.pop(key, None))
        with reading_catalog():
            # Shielded: a cancelled request must not end the work of the others.
            return await asyncio.shield(read)

    def hold(self, namespace: NamespaceName, parts: Sequence[tuple[object, int]]) -> bool:
        """Hold permits for encodings of a table, as long as each part of them lives; false if there is no room."""
        return self._kept.hold_beside(namespace, parts)

    async def completed(self, table: TopicTable, asker: Asker) -> TopicTable:  # noqa: ARG002  # the protocol's
        """The table unchanged: the catalogue has nothing to add."""
        return table

    def _let_go(self, namespace: NamespaceName) -> None:
        self._newest.pop(namespace, None)

    def _snapshot_of(self, listing: Listing) -> Snapshot | None:
        """The newest snapshot of a listing, while it is known."""
        known = self._kept.known(listing.namespace)
        return next((each for each in known if each.listing is listing), None)

    async def _made(self, snapshot: Snapshot) -> tuple[TopicTable, bool] | None:
        namespace = snapshot.listing.namespace
        known = self._newest.get(namespace)
        made = await in_thread(namespace, self._read_or_move, namespace, snapshot.version, known)
        version, newest = made.version, self._newest.get(namespace)
        same = version.same_state(snapshot.version)
        if not self.hold(namespace, [(chunk, chunk.nbytes) for chunk in made.table.chunks]):
            return (made.table, False) if same else None
        if (
            newest is None
            or newest.version.number <= version.number
            or newest.version.catalog_id != version.catalog_id
        ):
            self._newest[namespace] = made
            self._newest.move_to_end(namespace)
            if len(self._newest) > _KEPT:
                self._newest.popitem(last=False)
        if not same:
            return None
        self._tables[snapshot.listing] = made
        return made.table, True

    def _read_or_move(
        self,
        namespace: NamespaceName,
        wanted: CatalogVersion,
        known: _Versioned | None,
    ) -> _Versioned:
        """A table of the wanted version, or of the newest one if that is gone; in a thread."""
        with self._catalog.reading() as connection:
            now = read_version(connection, namespace)
            if known is not None and _is_known(connection, namespace, wanted, now):
                version, table = known
                span = read_span(connection, namespace, version, most=_most_changes(table.size))
                if not isinstance(span, Gap) and version.number <= wanted.number:
                    changes = _topic_changes(connection, span._replace(end=wanted), namespace)
                    return _Versioned(wanted, table.moved(changes))
            return _Versioned(now, load_topic_table(connection, namespace))


def _is_known(
    connection: sqlite3.Connection, namespace: NamespaceName, wanted: CatalogVersion, now: CatalogVersion
) -> bool:
    """Whether the catalogue's log leads on from a version."""
    if now.number == wanted.number:
        return now.same_state(wanted)
    return not isinstance(read_span(connection, namespace, wanted), Gap)


def _most_changes(size: int) -> int:
    """Changes up to which moving a table of so many topics is less work than reading it."""
    return 50 + max(size // 50, min(size // _CHANGED_PART, _MANY))


def _topic_changes(
    connection: sqlite3.Connection, span: LogSpan, namespace: NamespaceName
) -> list[TableChange]:
    """The changes of persistent topics that are listed, as far as a table shows them."""
    changes: list[TableChange] = []
    for base, listed_before, listed_after, topic_id in span.rows(connection, _COLUMNS, _PERSISTENT_TOPICS):
        partitions = _partitions(listed_after)
        if partitions is None or partitions != _partitions(listed_before):
            changes.append(TableChange(base.encode(), partitions, topic_id, listed_before != ""))
    names = pa.array([change.name for change in changes], pa.large_binary()).cast(pa.large_string())
    dropped = system_topic_mask(names, namespace, PERSISTENT)
    if dropped is None:
        return changes
    return [change for change, drop in zip(changes, dropped.to_pylist(), strict=True) if not drop]


@lru_cache(maxsize=1024)
def _partitions(listed: str) -> int | None:
    """The number of partitions that clients get for a topic; ``None`` if it lists no name."""
    names = ListedNames.parse(listed)
    return max(names.partitions, 1) if names else None
