"""Fetching, verifying and putting files by the SHA-256 in their names.

A store may lose bytes, and a copy of it may be cut. So a build reads an existing file under a name that it would write,
and replaces a damaged one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import pyarrow as pa

from broker_core_spark.errors import DamagedFile, InvalidGeneration
from broker_core_spark.format import FileEntry
from broker_core_spark.store.private_file import PrivateFile
from broker_core_spark.store.store import Store

__all__ = ["fetch_verified", "file_fault", "file_faults", "put_all_verified", "read_verified"]

#: Files verified at once: SHA-256 of one is slower than most disks.
_READERS: Final = 4


def _verified(store: Store, entry: FileEntry) -> Iterator[bytes]:
    """The bytes of a file in parts. Raises :exc:`InvalidGeneration` at the end of another one.

    Raises :exc:`DamagedFile` for another size before the first part.
    """
    sha256 = hashlib.sha256()
    for part in store.fetch(entry.name, entry.size):
        sha256.update(part)
        yield part
    if sha256.hexdigest() != entry.sha256:
        raise InvalidGeneration(entry.name, "its checksum is not the one that its name has: it was changed")


def fetch_verified(store: Store, entry: FileEntry, directory: str | None) -> pa.Buffer:
    """A file of a generation, verified and mapped in a private file.

    Raises :exc:`InvalidGeneration` and :exc:`~broker_core_spark.errors.DamagedFile` for a wrong file, and
    :exc:`StoreFailed` if the store or the directory fails.
    """
    with PrivateFile(directory) as file:
        file.write(_verified(store, entry))
        return file.mapped()


def read_verified(store: Store, entry: FileEntry) -> pa.Buffer:
    """A file of a generation, verified, in memory. Raises as :func:`fetch_verified`."""
    view, at = memoryview(b""), 0
    for part in _verified(store, entry):
        # Not before the file is known to have this size: a wrong one may be more than any memory.
        view = view or memoryview(pa.allocate_buffer(entry.size)).cast("B")
        view[at : at + len(part)] = part
        at += len(part)
    return pa.py_buffer(view.toreadonly())


def file_fault(store: Store, entry: FileEntry) -> str | None:
    """The fault of a file, found by reading all of it, or ``None``."""
    try:
        for _ in _verified(store, entry):
            pass
    except InvalidGeneration as error:
        return error.reason
    except DamagedFile as error:
        return str(error)
    return None


def file_faults(store: Store, entries: Iterable[FileEntry]) -> list[str | None]:
    """The fault of each file, or ``None``."""
    with ThreadPoolExecutor(_READERS) as threads:
        return list(threads.map(partial(file_fault, store), entries))


def put_all_verified(
    store: Store, files: Sequence[tuple[FileEntry, bytes | Sequence[memoryview]]]
) -> list[bool]:
    """Put each file unless the store has it. Returns which were written."""
    written = store.put_all_new([(entry.name, data) for entry, data in files])
    for at, (entry, data) in enumerate(files):
        if not written[at] and file_fault(store, entry) is not None:
            store.replace(entry.name, data)
            written[at] = True
    return written
