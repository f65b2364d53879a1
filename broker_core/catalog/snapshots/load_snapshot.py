"""Reading a namespace of the catalogue as a snapshot, and estimating its bytes before."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from broker_core.catalog.store.load_columns import read_names
from broker_core.catalog.store.log_rows import read_version
from broker_core.listing import BlockHashes, Chunk, ChunkStream, ListingData, chunk_size, listing_of
from broker_core.names import (
    DOMAINS,
    NON_PERSISTENT,
    PARTITION_SUFFIX,
    PERSISTENT,
    ListedNames,
    Mode,
    NamespaceName,
)
from broker_core.snapshots import Snapshot

__all__ = ["expected_bytes", "load_snapshot", "only_mode"]


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


@lru_cache(maxsize=1024)
def _name_count(listed: str) -> int:
    return len(ListedNames.parse(listed))


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
            connection.create_function("listed_names", 1, _name_count, deterministic=True)
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
