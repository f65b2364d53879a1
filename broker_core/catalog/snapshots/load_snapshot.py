"""Reading a namespace of the catalogue as a snapshot, and saying before how many bytes it will have."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from broker_core.catalog.snapshots.snapshot import Snapshot
from broker_core.catalog.store.load_columns import read_names
from broker_core.catalog.store.namespace_change import read_version
from broker_core.listing.block_hashes import BlockHashes
from broker_core.listing.chunk import Chunk
from broker_core.listing.chunk_size import chunk_size
from broker_core.listing.chunk_stream import ChunkStream
from broker_core.listing.listing import listing_of
from broker_core.listing.listing_data import ListingData
from broker_core.names import DOMAINS, NON_PERSISTENT, PERSISTENT, Mode, NamespaceName
from broker_core.names.listed_names import ListedNames
from broker_core.names.partition_suffix import PARTITION_SUFFIX

__all__ = ["expected_bytes", "load_snapshot", "only_mode"]


def only_mode(connection: sqlite3.Connection, namespace: NamespaceName) -> Mode | None:
    """The mode that lists all topics of a namespace, where they are of one domain (or there are none)."""
    has = "SELECT 1 FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ? LIMIT 1"
    domains = [
        code for code in range(len(DOMAINS)) if connection.execute(has, (str(namespace), code)).fetchone()
    ]
    if len(domains) > 1:
        return None
    return Mode.NON_PERSISTENT if domains == [1] else Mode.PERSISTENT


#: Bytes of a listing, of each chunk besides its columns, and the same of one that is not alone.
_LISTING: Final = 9 * 1024
_CHUNK: Final = 2560
_SHARED: Final = 4096
_SIZES: Final = (
    "SELECT total(n), total(n * bytes), total(n > 1 OR listed <> '*'), total(properties) FROM ("
    "SELECT CASE listed WHEN '*' THEN 1 ELSE listed_names(listed) END AS n, listed,"
    " length(CAST(base AS BLOB)) AS bytes, ifnull(length(properties), 0) AS properties"
    " FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ?)"
)


def expected_bytes(
    connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode, property_keys: Sequence[str] = ()
) -> int:
    """About the :attr:`Snapshot.nbytes` that :func:`load_snapshot` will have, in a tenth of its time; never less, as a
    rule."""
    connection.create_function(
        "listed_names", 1, lambda text: len(ListedNames.parse(text)), deterministic=True
    )
    total = 0
    prefix = len(str(namespace)) + 1
    for code, domain in enumerate(DOMAINS):
        if not mode.lists(domain):
            continue
        names, text, parted, properties = map(
            int, connection.execute(_SIZES, (str(namespace), code)).fetchone()
        )
        if parted:
            text += names * len(f"{PARTITION_SUFFIX}{max(names - 1, 0)}")
        fields = text + names * (
            len(domain) + 3 + prefix + 3
        )  # domain://namespace/, a tag, a length of two bytes
        chunks = 1 + fields // chunk_size().made
        total += (
            fields
            + fields // 8
            + 8 * names
            + BlockHashes.expected_bytes(names)
            + _CHUNK
            + (chunks - 1) * (_CHUNK + _SHARED)
        )
        if parted:
            total += fields + 20 * names  # what patterns match is not the end of the fields then
        if property_keys:
            total += properties + 2 * 4 * names * len(property_keys)  # and room for as many remembered rows
    return total + _LISTING


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
            # What is in the file was checked when it was written.
            stream = ChunkStream(namespace, domain, tuple(property_keys))
            for block, last in read_names(connection, number, code, property_keys):
                stream.add(block.names, block.properties, last)
                del block  # before the next one is read
            chunks += stream.chunks()
            del stream
    # Building needs more than what stays: give it back to the system, not to the next build.
    pa.default_memory_pool().release_unused()
    return Snapshot(version, listing_of(ListingData(namespace, mode, chunks)), property_keys)
