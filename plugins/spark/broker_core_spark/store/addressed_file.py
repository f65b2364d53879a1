"""One file at an address: a path, ``file://``, or a key of a bucket.

A build reads its patterns from such a file, and writes its report and its table to others.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.store_address import local_path

__all__ = ["AddressedFile", "BucketFile", "addressed_file"]


class AddressedFile(Protocol):
    """A file. Failures are :exc:`StoreFailed`, with the address and without secrets."""

    address: str

    def check_readable(self) -> None:
        """Raise unless there is such a file."""

    def check_writable(self) -> None:
        """Raise unless a file can be made beside it. The file itself stays as it is."""

    def read(self, limit: int) -> bytes:
        """All bytes. Raises for more than ``limit`` bytes too."""

    def write(self, data: bytes) -> None:
        """Replace the file whole, or not at all."""


def addressed_file(address: str, options: Mapping[str, str] | None = None) -> AddressedFile:
    """The file at a path, ``file://``, ``s3://``, ``gs://``, ``az://`` or ``memory://``. Nothing is looked at yet.

    ``options`` are the bucket's, as for a store. Raises :exc:`StoreFailed` for an address that names no file.
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        return _LocalFile(address, Path(address))
    if scheme == "file":
        return _LocalFile(address, local_path(address))
    from broker_core_spark.store import bucket_store

    folder, slash, key = rest.rpartition("/")
    if scheme != "memory" and scheme not in bucket_store.BUCKET_SCHEMES:
        raise StoreFailed(f"{scheme}:// is no place for a file: a path, file://, s3://, gs:// or az://")
    if not slash or not folder or not key:
        raise StoreFailed(f"{address}: the address names no file")
    if scheme == "memory":
        return BucketFile(address, bucket_store.memory_store(folder).client, key)
    return BucketFile(address, bucket_store.bucket_client(f"{scheme}://{folder}", options or {}), key)


class _LocalFile:
    def __init__(self, address: str, path: Path) -> None:
        self.address = address
        self._path = path

    def check_readable(self) -> None:
        if self._is_special():
            return  # bytes read from a pipe are gone
        try:
            with self._path.open("rb"):
                return
        except OSError as error:
            raise self._failed("read", error) from error

    def check_writable(self) -> None:
        try:
            if self._is_special():
                self._path.open("ab").close()
                return
            if self._path.is_dir():
                raise StoreFailed(f"{self.address}: cannot write it: there is a folder of this name")
            beside = self._beside()
            beside.touch(exist_ok=False)
            beside.unlink()
        except OSError as error:
            raise self._failed("write", error) from error

    def read(self, limit: int) -> bytes:
        try:
            with self._path.open("rb") as file:
                data = file.read(limit + 1)
        except OSError as error:
            raise self._failed("read", error) from error
        if len(data) > limit:
            raise StoreFailed(f"{self.address}: more than {limit} bytes")
        return data

    def write(self, data: bytes) -> None:
        try:
            if self._is_special():
                self._path.write_bytes(data)
                return
            beside = self._beside()
            try:
                beside.write_bytes(data)
                beside.replace(self._path)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            raise self._failed("write", error) from error

    def _is_special(self) -> bool:
        """Whether it is a device or a pipe, such as ``/dev/stdout``, which no other file replaces."""
        return self._path.exists() and not self._path.is_file() and not self._path.is_dir()

    def _beside(self) -> Path:
        return self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")

    def _failed(self, what: str, error: OSError) -> StoreFailed:
        return StoreFailed(f"{self.address}: cannot {what} it: {error.strerror or error}")


class BucketFile:
    """The file with this key of a bucket. ``address`` is shown to people."""

    def __init__(self, address: str, client: Any, key: str) -> None:
        self.address = address
        self._client = client
        self._key = key

    def check_readable(self) -> None:
        import obstore

        with self._failing("read"):
            obstore.head(self._client, self._key)

    def check_writable(self) -> None:
        import obstore

        beside = f"{self._key}.{secrets.token_hex(8)}.check"
        with self._failing("write"):
            obstore.put(self._client, beside, b"", use_multipart=False)
            obstore.delete(self._client, beside)

    def read(self, limit: int) -> bytes:
        import obstore

        with self._failing("read"):
            found = obstore.get(self._client, self._key)
            if int(found.meta["size"]) > limit:
                raise StoreFailed(f"{self.address}: more than {limit} bytes")
            return bytes(found.bytes())

    def write(self, data: bytes) -> None:
        import obstore

        with self._failing("write"):
            obstore.put(self._client, self._key, data)

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """Turns errors of obstore into :exc:`StoreFailed`."""
        from obstore.exceptions import BaseError, NotFoundError

        from broker_core_spark.store.bucket_store import obstore_message

        try:
            yield
        except (NotFoundError, FileNotFoundError) as error:
            raise StoreFailed(f"{self.address}: cannot {what} it: there is no such file") from error
        except (BaseError, OSError, ValueError) as error:
            raise StoreFailed(f"{self.address}: cannot {what} it: {obstore_message(error)}") from error
