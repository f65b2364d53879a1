"""A folder at an address: a path, ``file://``, or a prefix of a bucket. Its files are written whole, and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.addressed_file import BucketFile, addressed_file
from broker_core_spark.store.store_address import local_path
from broker_core_spark.store.stored_file import StoredFile

__all__ = ["AddressedFolder", "addressed_folder"]


class AddressedFolder(Protocol):
    """A folder. Paths are relative to it. Failures are :exc:`StoreFailed`, with the address and without secrets."""

    address: str

    def check_writable(self) -> None:
        """Raise unless a file can be made in it. A folder of a file system is made."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole, or not at all."""

    def files(self) -> list[StoredFile]:
        """All files below it, unordered. None without such a folder."""

    def remove(self, paths: Iterable[str]) -> None:
        """Remove these files, and folders of a file system that are empty then. Files that are gone do not count."""


def addressed_folder(address: str, options: Mapping[str, str] | None = None) -> AddressedFolder:
    """The folder at an address as of :func:`~.addressed_file.addressed_file`. Nothing is looked at yet.

    ``options`` are those of the bucket. Raises :exc:`StoreFailed` for an address that names no folder.
    """
    address = address.rstrip("/")
    scheme, separator, rest = address.partition("://")
    if not separator:
        return _LocalFolder(address, Path(address))
    if scheme == "file":
        return _LocalFolder(address, local_path(address))
    from broker_core_spark.store import bucket_store

    if scheme == "memory":
        return _BucketFolder(address, bucket_store.memory_store(rest).client)
    if scheme not in bucket_store.BUCKET_SCHEMES:
        raise StoreFailed(f"{scheme}:// is no place for files: a path, file://, s3://, gs:// or az://")
    return _BucketFolder(address, bucket_store.bucket_client(address, options or {}))


class _LocalFolder:
    def __init__(self, address: str, path: Path) -> None:
        self.address = address
        self._path = path

    def check_writable(self) -> None:
        self._make(self._path)
        addressed_file(str(self._path / "new")).check_writable()

    def write(self, path: str, data: bytes) -> None:
        self._make((self._path / path).parent)
        addressed_file(str(self._path / path)).write(data)

    def files(self) -> list[StoredFile]:
        found = []
        try:
            for path in self._path.rglob("*"):
                if path.is_file():
                    with suppress(FileNotFoundError):  # removed meanwhile
                        stat = path.stat()
                        modified = datetime.fromtimestamp(stat.st_mtime, UTC)
                        name = path.relative_to(self._path).as_posix()
                        found.append(StoredFile(name, stat.st_size, modified))
        except OSError as error:
            raise StoreFailed(f"{self.address}: cannot list it: {error.strerror or error}") from error
        return found

    def remove(self, paths: Iterable[str]) -> None:
        folders = {self._path}
        try:
            for name in paths:
                path = self._path / name
                path.unlink(missing_ok=True)
                folders.add(path.parent)
        except OSError as error:
            raise StoreFailed(f"{self.address}: cannot remove files: {error.strerror or error}") from error
        for folder in sorted(folders, reverse=True):
            with suppress(OSError):  # it has other files
                folder.rmdir()

    def _make(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreFailed(f"{self.address}: cannot make the folder: {error.strerror}") from error


class _BucketFolder:
    def __init__(self, address: str, client: Any) -> None:
        self.address = address
        self._client = client

    def check_writable(self) -> None:
        self._file("new").check_writable()

    def write(self, path: str, data: bytes) -> None:
        self._file(path).write(data)

    def files(self) -> list[StoredFile]:
        import obstore
        from obstore.exceptions import BaseError

        from broker_core_spark.store.bucket_store import obstore_message

        try:
            return [
                StoredFile(found["path"], int(found["size"]), found["last_modified"])
                for batch in obstore.list(self._client)
                for found in batch
            ]
        except (BaseError, OSError, ValueError) as error:
            raise StoreFailed(f"{self.address}: cannot list it: {obstore_message(error)}") from error

    def remove(self, paths: Iterable[str]) -> None:
        import obstore
        from obstore.exceptions import BaseError, NotFoundError

        from broker_core_spark.store.bucket_store import obstore_message

        try:
            for path in paths:
                with suppress(NotFoundError, FileNotFoundError):
                    obstore.delete(self._client, path)
        except (BaseError, OSError, ValueError) as error:
            raise StoreFailed(f"{self.address}: cannot remove files: {obstore_message(error)}") from error

    def _file(self, path: str) -> BucketFile:
        return BucketFile(f"{self.address}/{path}", self._client, path)
