"""Where generations are kept: a folder (local or NFS) or a bucket (S3, GCS, Azure), behind five operations.

The one that all rests on is *put if absent*: files are immutable, and a pointer is published by being the first to
create its name. In a folder that is a hard link, which NFS makes atomically too; in a bucket a conditional put. A place
that has neither is refused with the reason when it is first written to. All calls wait, so they belong on a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from broker_core_spark.store.stored_file import StoredFile

__all__ = ["Store"]


class Store(Protocol):
    """A place for files by names such as ``segments/...``; failures are :exc:`StoreFailed`, with the address."""

    @property
    def uri(self) -> str:
        """The address, without secrets; :func:`~.store_address.open_store` opens it again."""

    def check(self) -> None:
        """Raise :exc:`StoreFailed` unless this place creates a name only once. Writes and deletes a small file."""

    def put_new(self, path: str, data: bytes | BinaryIO) -> bool:
        """Create a file whole; ``False`` where there is one of this name, which stays as it is."""

    def replace(self, path: str, data: bytes | BinaryIO) -> None:
        """Put a file whole in the place of what is there, at once: for what :mod:`.contents` found to be damaged."""

    def get(self, path: str, limit: int) -> bytes | None:
        """The bytes of a file, ``None`` without one. :exc:`DamagedFile` where there are more than ``limit``."""

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Bytes ``start`` to ``stop`` of a file that is there and has them."""

    def fetch(self, path: str, into: BinaryIO, size: int) -> bool:
        """Append the bytes of a file, of which there must be ``size``; ``False`` without such a file.

        Raises :exc:`DamagedFile` where there are more or fewer.
        """

    def list(self, folder: str) -> Iterator[StoredFile]:
        """The files of a folder, in any order."""

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is fine."""
