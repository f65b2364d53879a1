"""The newest snapshot of a namespace, with the values of selecting properties: reading it, or moving an older one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker_core.catalog.snapshots.load_snapshot import expected_bytes, load_snapshot, only_mode
from broker_core.catalog.snapshots.name_changes import LoggedNames, read_name_changes
from broker_core.catalog.snapshots.recent_changes import SnapshotKey
from broker_core.catalog.store.log_rows import read_version
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.warm_start import WarmStart
from broker_core.change_log import Gap
from broker_core.memory import Permit
from broker_core.names import Mode, NamespaceName
from broker_core.plugin_api import PROPERTY
from broker_core.snapshots import Snapshot

__all__ = ["SMALL", "SnapshotSource"]

#: Bytes of a snapshot that is read beside large ones, however many they are.
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
        found = None if self.warm is None else self.warm.find(connection, namespace, mode)
        return (
            expected_bytes(connection, namespace, mode, self.keys) if found is None else found.expected_bytes
        )


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
