"""Where generations are kept: a folder (local or NFS) or a bucket (S3, GCS, Azure), behind five operations.

The one that all rests on is *put if absent*: files are immutable, and a pointer is published by being the first to
create its name. In a folder that is a hard link, which NFS makes atomically too; in a bucket a conditional put. A place
that has neither is refused with the reason when it is first written to. All calls wait, so they belong on a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.stored_file import StoredFile

__all__ = ["Store", "open_store"]


class Store(Protocol):
    """A place for files by names such as ``segments/...``; failures are :exc:`StoreFailed`, with the address."""

    @property
    def uri(self) -> str:
        """The address, without secrets; :func:`open_store` opens it again."""

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


def open_store(uri: str, options: Mapping[str, str] | None = None) -> Store:
    """The store at a path, or at ``file://``, ``s3://``, ``gs://``, ``az://`` or ``memory://NAME``.

    ``options`` are those of obstore for buckets (``endpoint``, ``region`` ...); credentials come from the environment,
    the instance or a file, as the cloud's own tools take them, and never from the address. ``memory://`` lives in this
    process. Raises :exc:`StoreFailed` for any other address.
    """
    scheme, separator, rest = uri.partition("://")
    if not separator:
        if not uri:
            raise StoreFailed("the address of the store is empty")
        return _folder(Path(uri))
    if scheme == "file":
        parts = urlsplit(uri)
        if parts.netloc not in ("", "localhost"):
            raise StoreFailed(f"{uri}: a file address has no host (three slashes: file:///...)")
        return _folder(Path(unquote(parts.path)))
    from broker_core_spark.store import bucket_store

    if scheme == "memory":
        return bucket_store.memory_store(rest)
    if scheme in ("s3", "s3a", "gs", "az", "abfs", "abfss"):
        return bucket_store.bucket_store(uri, options or {})
    raise StoreFailed(
        f"{scheme}:// is no place for generations: a path, file://, s3://, gs://, az:// or memory://"
    )


def _folder(path: Path) -> Store:
    from broker_core_spark.store.folder_store import FolderStore

    return FolderStore(path)
