"""Fetching a file of a generation: verified by its size and checksum on the way, into a private file that is mapped."""

from __future__ import annotations

import hashlib
from typing import Any, BinaryIO, cast

import pyarrow as pa

from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.manifest import FileEntry
from broker_core_spark.store.private_file import PrivateFile
from broker_core_spark.store.store import Store

__all__ = ["fetched"]


class _Digesting:
    """What a store fetches into: a private file, and the checksum of what went through."""

    def __init__(self, file: PrivateFile) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self._file.write(data)


def fetched(store: Store, entry: FileEntry, directory: str | None) -> pa.Buffer:
    """A file of the generation in a private file, mapped; its size and its checksum are right.

    Raises :exc:`InvalidGeneration` and :exc:`~broker_core_spark.errors.DamagedFile` where they are not, and
    :exc:`StoreFailed` where the store or the directory fails.
    """
    with PrivateFile(directory) as file:
        digesting = _Digesting(file)
        if not store.fetch(entry.name, cast(BinaryIO, digesting), entry.size):
            raise InvalidGeneration(entry.name, "it is not in the store")
        if digesting.digest.hexdigest() != entry.sha256:
            raise InvalidGeneration(
                entry.name, "its checksum is not the one that its name has: it was changed"
            )
        return file.mapped()
