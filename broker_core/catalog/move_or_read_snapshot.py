"""The newest snapshot of a namespace, with the values of selecting properties: reading it, or moving an older one.

Moves after a few changes are made by the event loop, chunk by chunk: handing so little work to a thread takes as long
again, and requests that come meanwhile would wait longer for the interpreter's lock than for one chunk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from broker_core.catalog.snapshots.name_changes import LoggedNames, read_name_changes
from broker_core.catalog.snapshots.recent_changes import KeptSnapshots, SnapshotKey
from broker_core.catalog.store.file_watch import FileWatch
from broker_core.catalog.store.load_columns import read_names
from broker_core.catalog.store.log_rows import RecentRows, read_version
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.warm_start import WarmStart
from broker_core.change_log import Gap
from broker_core.concurrency import in_turns
from broker_core.listing import BlockHashes, Chunk, ChunkStream, ListingData, chunk_size, listing_of
from broker_core.memory import Permit
from broker_core.names import (
    DOMAINS,
    NON_PERSISTENT,
    PARTITION_SUFFIX,
    PERSISTENT,
    Mode,
    NamespaceName,
    count_listed,
)
from broker_core.plugin_api import PROPERTY
from broker_core.snapshots import Snapshot

__all__ = ["SMALL", "SnapshotSource", "SnapshotUpdates", "expected_bytes", "load_snapshot", "only_mode"]


def only_mode(connection: sqlite3.Connection, namespace: NamespaceName) -> Mode | None:
    """The mode that lists all topics of a namespace, if they are of one domain (or there are none)."""
    has = "SELECT 1 FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ? LIMIT 1"
    domains = [
        code for code in range(len(DOMAINS)) if connection.execute(has, (str(namespace), code)).fetchone()
    ]
    if len(domains) > 1:
        return None
    return Mode.NON_PERSISTENT if domains == [1] else Mode.PERSISTENT


#: Bytes of a listing, of its only chunk besides its columns, and of each chunk if there are more.
_LISTING: Final = 9 * 1024
_CHUNK: Final = 2560
_SHARED: Final = 4096
#: The number of all topics, and the bytes of their names. Reading their properties takes half as long again.
_SIZES: Final = (
    "SELECT count(*), total(length(CAST(base AS BLOB))), total(listed <> '*')"
    " FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ?"
)
_PROPERTIES: Final = (
    "SELECT total(length(properties))"
    " FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ?"
)
#: The number and bytes of the listed names, if some are partitions.
_LISTED: Final = (
    "SELECT total(n), total(n * bytes) FROM ("
    "SELECT listed_names(listed) AS n, length(CAST(base AS BLOB)) AS bytes"
    " FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ?)"
)


#: Bytes of a snapshot for which memory is given back to the system.
_LARGE: Final = 1 << 20


def expected_bytes(
    connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode, property_keys: Sequence[str] = ()
) -> int:
    """About the :attr:`Snapshot.nbytes` that :func:`load_snapshot` will have, in a quarter of its time; never less, as
    a rule."""
    expected = _LISTING
    for code, domain in enumerate(DOMAINS):
        if not mode.lists(domain):
            continue
        part = (str(namespace), code)
        names, text, parted = map(int, connection.execute(_SIZES, part).fetchone())
        if parted:
            connection.create_function("listed_names", 1, count_listed, deterministic=True)
            names, text = map(int, connection.execute(_LISTED, part).fetchone())
            text += names * len(f"{PARTITION_SUFFIX}{max(names - 1, 0)}")
        # domain://namespace/, a tag, and a length of two bytes
        fields = text + names * (len(f"{domain}://{namespace}/") + 3)
        shared = fields // chunk_size().made
        expected += fields + fields // 8 + 8 * names + BlockHashes.expected_bytes(names)
        expected += _CHUNK + shared * (_CHUNK + _SHARED)
        if parted:
            expected += fields + 20 * names  # then forms are not the ends of the fields
        if property_keys:
            # Codes, and room for as many remembered rows.
            expected += 2 * 4 * names * len(property_keys)
            expected += int(connection.execute(_PROPERTIES, part).fetchone()[0])
    return expected


def load_snapshot(
    connection: sqlite3.Connection,
    namespace: NamespaceName,
    mode: Mode,
    property_keys: Sequence[str] = (),
) -> Snapshot:
    """Read a namespace; ``connection`` is within a transaction, so that version and topics are of one state."""
    version = read_version(connection, namespace)
    row = connection.execute("SELECT id FROM namespaces WHERE name = ?", (str(namespace),)).fetchone()
    if row is None:
        return Snapshot.of_nothing(version.catalog_id, namespace, mode, property_keys)
    (number,) = row
    chunks: list[Chunk] = []
    for code, domain in ((1, NON_PERSISTENT), (0, PERSISTENT)):
        if mode.lists(domain):
            # Names in the file were checked when they were written.
            stream = ChunkStream(namespace, domain, tuple(property_keys))
            for block, last in read_names(connection, number, code, property_keys):
                stream.add(block.names, block.properties, last)
                del block  # before the next one is read
            chunks += stream.chunks()
            del stream
    snapshot = Snapshot(version, listing_of(ListingData(namespace, mode, chunks)), property_keys)
    if snapshot.nbytes >= _LARGE:
        # Building needs more memory than stays in use: give it back to the system. After a small build the next would
        # request the same pages again, which takes longer than the build.
        pa.default_memory_pool().release_unused()
    return snapshot


#: Bytes of a snapshot up to which it is read at once, however many large ones are being read.
SMALL: Final = 1024 * 1024
#: Topics of a namespace that the event loop reads itself, and bytes of its snapshot.
_FEW: Final = 128
_TINY: Final = 64 * 1024
_MORE: Final = (
    "SELECT 1 FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) LIMIT 1 OFFSET ?"
)


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotSource:
    """Reads a catalogue for one choice of properties (``keys``), with its stored snapshots (``warm``)."""

    catalog: SqliteCatalog
    keys: tuple[str, ...]
    warm: WarmStart | None

    @property
    def words(self) -> frozenset[str]:
        """The request fields that listings depend on."""
        return frozenset(f"{PROPERTY}{key}" for key in self.keys)

    def of_keys(self, keys: tuple[str, ...]) -> SnapshotSource:
        """The source for other properties, in place of this one."""
        return SnapshotSource(self.catalog, keys, None if self.warm is None else self.warm.of_keys(keys))

    def has_read(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot has the values of these properties, or no topics at all."""
        return snapshot.property_keys == self.keys or not snapshot.version.number

    def read_or_move(
        self,
        key: SnapshotKey,
        known: list[Snapshot],
        room: int | None,
        read: list[LoggedNames],
    ) -> Snapshot | int:
        """The newest snapshot, moved from a known one if that is less work; in a thread.

        If it takes more than ``room`` bytes besides the known ones, only the number of bytes. Empties ``known``, so
        that this thread keeps none of them in memory. ``read`` has the changes that were read last.
        """
        namespace, mode = key
        with self.catalog.reading() as connection:
            mode = _listed_mode(connection, namespace, mode)
            # The newest first: changes that it has already are not made again.
            known.sort(key=lambda old: (old.version.number, old.listing.mode is mode))
            while known:
                old = known.pop()
                own = old.in_mode(mode)
                if own is None or not self.has_read(own):
                    continue
                changes = _changes_since(connection, namespace, own, read)
                if isinstance(changes, Gap) or not own.worth_moving(changes):
                    continue
                if room is not None and (changes or own is not old):
                    size = own.moved_bytes(changes)
                    if size > room:
                        return size
                return own.moved(changes) if changes else own
            if room is not None:
                size = self._expected_bytes(connection, namespace, mode)
                if size > min(room, SMALL):
                    return size
            stored = None if self.warm is None else self.warm.read(connection, namespace, mode)
            return stored or load_snapshot(connection, namespace, mode, self.keys)

    def read_tiny(
        self, key: SnapshotKey, permit_for: Callable[[int], Permit | None], connection: sqlite3.Connection
    ) -> tuple[Snapshot, Permit] | None:
        """The newest snapshot of a namespace of few topics, and its permits; ``None`` for a larger one, or without.

        It takes well under a millisecond, less than handing it to a thread, which would wait for the interpreter's
        lock, and make others wait. ``connection`` is within a transaction.
        """
        namespace, mode = key
        if connection.execute(_MORE, (str(namespace), _FEW)).fetchone() is not None:
            return None
        mode = _listed_mode(connection, namespace, mode)
        size = expected_bytes(connection, namespace, mode, self.keys)
        permit = permit_for(size) if size <= _TINY else None
        if permit is None:
            return None
        try:
            return load_snapshot(connection, namespace, mode, self.keys), permit
        except BaseException:
            permit.release()
            raise

    def _expected_bytes(self, connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode) -> int:
        """About how many bytes the namespace will take once it is read."""
        found = None if self.warm is None else self.warm.expected_bytes(connection, namespace, mode)
        return expected_bytes(connection, namespace, mode, self.keys) if found is None else found


def _changes_since(
    connection: sqlite3.Connection, namespace: NamespaceName, snapshot: Snapshot, read: list[LoggedNames]
) -> LoggedNames | Gap:
    """The changes since a snapshot: those in ``read`` if they lead from it to now."""
    if read and read[0].since.same_state(snapshot.version):
        if read[0].version.same_state(read_version(connection, namespace)):
            return read[0]
    changes = read_name_changes(
        connection,
        namespace,
        snapshot.version,
        most=snapshot.most_changes,
        properties=bool(snapshot.property_keys),
    )
    if isinstance(changes, LoggedNames):
        read[:] = [changes]
    return changes


def _listed_mode(connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode) -> Mode:
    """The mode to read: topics of one domain alone are the same listing for "all", so the two share it."""
    only = only_mode(connection, namespace) if mode is Mode.ALL else None
    return mode if only is None else only


#: Logged changes of a small move: they are looked up in one turn of the loop.
_MOST_ROWS: Final = 16
#: Names of a small move: one topic may have thousands of partitions.
_MOST_NAMES: Final = 32
#: Characters of its names and properties: all are read in one turn of the loop.
_MOST_TEXT: Final = 32 * 1024


class SnapshotUpdates:
    """Small moves of the snapshots of a cache, one at a time. For one event loop."""

    def __init__(self, kept: KeptSnapshots, watch: FileWatch) -> None:
        self._kept = kept
        self._watch = watch
        self._is_moving = False

    async def moved(self, key: SnapshotKey, room: int) -> Snapshot | None:
        """The newest snapshot, moved from the kept one; ``None`` if that is much work, or takes more than ``room``
        bytes, or another snapshot is being moved."""
        kept = self._kept.get(key)
        if kept is None or self._is_moving:
            return None
        own = kept.snapshot
        recent = self._watch.recent(key[0], own.version, _MOST_ROWS)
        changes = None if recent is None else _few(own, self._kept.known(key[0]), key[1], recent)
        if changes is None or own.moved_bytes(changes) > room:
            return None
        self._is_moving = True
        try:
            return await in_turns(own.moving(changes), key[0])
        finally:
            self._is_moving = False


def _few(own: Snapshot, known: Sequence[Snapshot], mode: Mode, recent: RecentRows) -> LoggedNames | None:
    """The changes from the kept snapshot of a mode to the newest version.

    ``None`` if they are many, or need a decision: a newer snapshot is known, whose chunks can be shared; or a listing
    of one domain, the only one of the namespace, may no longer be complete.
    """
    changes = LoggedNames(
        own.listing.namespace, own.version, recent.version, [row[1:] for row in recent.rows]
    )
    listed = own.listing.mode
    text = sum(len(part or "") for row in changes.rows for part in row[1:])
    if (
        text > _MOST_TEXT
        or changes.count() > _MOST_NAMES
        or any(other.version.number > own.version.number for other in known)
    ):
        return None
    if listed is not mode and not all(listed.lists(DOMAINS[row[0]]) for row in changes.rows):
        return None
    return changes
