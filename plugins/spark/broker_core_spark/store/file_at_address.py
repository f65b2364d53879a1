"""One file at an address: a path, ``file://``, or a key of a bucket.

A build reads its patterns from such a file, and writes its report and its table to others.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.store import failing
from broker_core_spark.store.store_address import local_path

__all__ = ["AddressedFile", "addressed_file"]


def addressed_file(address: str, options: Mapping[str, str] | None = None) -> AddressedFile:
    """The file at a path, ``file://``, ``s3://``, ``gs://``, ``az://`` or ``memory://``. Nothing is looked at yet.

    ``options`` are the bucket's, as for a store. Raises :exc:`StoreFailed` for an address that names no file. So do the
    file's functions, with the address and without secrets: ``check_readable`` unless there is such a file,
    ``check_writable`` unless a file can be made beside it, ``read`` also for more than ``limit`` bytes. ``write``
    replaces the file whole, or not at all.
    """
    scheme, separator, rest = address.partition("://")
    if not separator or scheme == "file":
        return _LocalFile(address, local_path(address))
    from broker_core_spark.store import bucket_store

    folder, _, key = rest.rpartition("/")
    if scheme not in bucket_store.PREFIXES:
        raise StoreFailed(f"{scheme}:// is no place for a file: a path, file://, s3://, gs:// or az://")
    if not folder or not key:
        raise StoreFailed(f"{address}: the address names no file")
    return _BucketFile(address, bucket_store.bucket_client(f"{scheme}://{folder}", options or {}), key)


@dataclass(frozen=True, slots=True)
class _LocalFile:
    _address: str
    _path: Path

    def check_readable(self) -> None:
        with failing(self._address, "read it"):
            if not self.read_once:
                self._path.open("rb").close()

    def check_writable(self) -> None:
        if self._path.is_dir():
            raise StoreFailed(f"{self._address}: cannot write it: there is a folder of this name")
        with failing(self._address, "write it"):
            place = self._path if self.read_once else self._beside()
            place.open("ab").close()
            if place != self._path:
                place.unlink()

    def read(self, limit: int) -> bytes:
        with failing(self._address, "read it"), self._path.open("rb") as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise StoreFailed(f"{self._address}: more than {limit} bytes")
        return data

    def write(self, data: bytes) -> None:
        with failing(self._address, "write it"):
            if self.read_once:
                self._path.write_bytes(data)
                return
            beside = self._beside()
            try:
                beside.write_bytes(data)
                beside.replace(self._path)
            finally:
                beside.unlink(missing_ok=True)

    @property
    def read_once(self) -> bool:
        """Whether the file is a device or a pipe, such as ``/dev/stdin``: bytes that are read are gone, and no other
        file replaces it.
        """
        return self._path.exists() and not self._path.is_file() and not self._path.is_dir()

    def _beside(self) -> Path:
        return self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")


@dataclass(frozen=True, slots=True)
class _BucketFile:
    """The file with this key of a bucket. The address is shown to people."""

    _address: str
    _client: Any
    _key: str
    read_once: ClassVar[bool] = False

    def check_readable(self) -> None:
        import obstore

        with self._failing("read it"):
            obstore.head(self._client, self._key)

    def check_writable(self) -> None:
        import obstore

        beside = f"{self._key}.{secrets.token_hex(8)}.check"
        with self._failing("write it"):
            obstore.put(self._client, beside, b"", use_multipart=False)
            obstore.delete(self._client, beside)

    def read(self, limit: int) -> bytes:
        import obstore

        with self._failing("read it"):
            found = obstore.get(self._client, self._key)
            if int(found.meta["size"]) > limit:
                raise StoreFailed(f"{self._address}: more than {limit} bytes")
            return bytes(found.bytes())

    def write(self, data: bytes) -> None:
        import obstore

        with self._failing("write it"):
            obstore.put(self._client, self._key, data)

    def _failing(self, what: str) -> AbstractContextManager[None]:
        from broker_core_spark.store.bucket_store import ERRORS, BucketStore, obstore_message

        return failing(
            self._address,
            what,
            ERRORS,
            lambda error: (
                "there is no such file" if isinstance(error, BucketStore.missing) else obstore_message(error)
            ),
        )


AddressedFile: TypeAlias = _LocalFile | _BucketFile
