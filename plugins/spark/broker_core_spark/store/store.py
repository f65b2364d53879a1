"""The interface of stores: folders (local, NFS) and buckets (S3, GCS, Azure).

Files are immutable, and publishing creates the next pointer. Both need *put if absent*: a hard link in a folder,
atomic over NFS too, and a conditional put in a bucket. The first write refuses a place that has neither. All calls
block and belong on a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol

from broker_core_spark.store.stored_file import StoredFile

__all__ = ["Store"]


class Store(Protocol):
    """Files by names such as ``segments/...``. Failures are :exc:`StoreFailed`, with the address."""

    @property
    def uri(self) -> str:
        """The address without secrets, for :func:`~.store_address.open_store`."""

    def check(self) -> None:
        """Raise :exc:`StoreFailed` unless a name is created only once. Writes and deletes a small file."""

    def put_new(self, path: str, data: bytes | BinaryIO) -> bool:
        """Create a whole file. Returns ``False`` if the name exists, and leaves that file as it is."""

    def put_all_new(self, files: Sequence[tuple[str, bytes | BinaryIO]]) -> list[bool]:
        """Do and return what :meth:`put_new` does for each (path, data), in less time than one by one.

        If it fails, some of the files may be there, each of them whole.
        """

    def replace(self, path: str, data: bytes | BinaryIO) -> None:
        """Replace a file at once: for one that :mod:`~.verified_files` found to be damaged."""

    def get(self, path: str, limit: int) -> bytes | None:
        """The bytes of a file, or ``None`` without one. Raises :exc:`DamagedFile` for more than ``limit`` bytes."""

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Bytes ``start`` to ``stop`` of an existing file."""

    def fetch(self, path: str, into: BinaryIO, size: int) -> bool:
        """Append a file of ``size`` bytes to ``into``. Returns ``False`` without such a file.

        Raises :exc:`DamagedFile` for another size.
        """

    def list(self, folder: str) -> Iterator[StoredFile]:
        """The files of a folder, unordered."""

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
