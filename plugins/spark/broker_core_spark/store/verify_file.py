"""Files whose name is their content: whether one that is there is what its name says, and putting one where it is not.

A store loses bytes now and then, and a copy of it may be cut. What a build finds under the name of a file that it would
write is therefore read back; where it is damaged, it is garbage, and the file takes its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final, Protocol, cast

from broker_core_spark.errors import DamagedFile
from broker_core_spark.store.store import Store

__all__ = ["Named", "fault_of", "faults_of", "named", "put_content"]

#: A file by its name, its size in bytes and its SHA-256 in hex.
Named = tuple[str, int, str]
#: Files that are read at once: SHA-256 of one is slower than most disks.
_READERS: Final = 4


class _Entry(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def sha256(self) -> str: ...


def named(entries: Iterable[_Entry]) -> list[Named]:
    """The files of entries of a manifest."""
    return [(entry.name, entry.size, entry.sha256) for entry in entries]


class _Digest:
    """What a store fetches into, where only the checksum is wanted."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        return len(data)


def fault_of(store: Store, file: Named) -> str | None:
    """What is wrong with a file, by reading all of it; ``None`` where it is what it must be."""
    name, size, sha256 = file
    digest = _Digest()
    try:
        if not store.fetch(name, cast(BinaryIO, digest), size):
            return "it is not in the store"
    except DamagedFile as error:
        return str(error)
    if digest.sha256.hexdigest() != sha256:
        return "its checksum is not the one that its name has: it was changed"
    return None


def faults_of(store: Store, files: Iterable[Named]) -> Iterator[tuple[str, str]]:
    """(name, fault) of each file that has one, in the order of ``files``."""
    wanted = list(files)
    with ThreadPoolExecutor(_READERS) as threads:
        found = threads.map(lambda file: fault_of(store, file), wanted)
        for (name, _, _), fault in zip(wanted, found, strict=True):
            if fault is not None:
                yield name, fault


def put_content(store: Store, file: Named, data: bytes | BinaryIO) -> bool:
    """Have a file in the store: ``False`` where the very file was there, ``True`` where it was written."""
    name = file[0]
    if store.put_new(name, data):
        return True
    if fault_of(store, file) is None:
        return False
    if not isinstance(data, bytes):
        data.seek(0)
    store.replace(name, data)
    return True
