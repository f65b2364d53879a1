"""A store in a bucket (S3, GCS, Azure) or in memory, by obstore. Conditional puts create each name once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, NotSupportedError
from obstore.store import MemoryStore, from_url

from broker_core_spark.errors import DamagedFile, StoreFailed
from broker_core_spark.store.create_once_check import check_creates_once
from broker_core_spark.store.stored_file import CHUNK, StoredFile, checked_path

__all__ = [
    "BUCKET_SCHEMES",
    "BucketStore",
    "bucket_client",
    "bucket_store",
    "memory_store",
    "obstore_message",
]

#: Prefix of a store's options by scheme. Operators may leave it out.
_PREFIXES: Final = {
    "s3": "aws_",
    "s3a": "aws_",
    "gs": "google_",
    "az": "azure_",
    "abfs": "azure_",
    "abfss": "azure_",
}
BUCKET_SCHEMES: Final = frozenset(_PREFIXES)
#: Requests at once if many files are put: each waits for the bucket.
_PUTS_AT_ONCE: Final = 8
#: Options of the connection rather than of the store.
_CLIENT_OPTIONS: Final = frozenset(
    {"allow_http", "connect_timeout", "timeout", "proxy_url", "pool_max_idle_per_host"}
)
#: Hosts that give an instance of a cloud its credentials: asked if the environment has none.
_METADATA_HOSTS: Final = ("169.254.169.254", "metadata.google.internal")


class BucketStore:
    """A store over a client of obstore. ``uri`` is shown to people and has no secrets.

    The first write checks the bucket, unless somebody else has ``checked`` it.
    """

    def __init__(self, uri: str, client: Any, *, checked: bool = False) -> None:
        self._uri = uri
        self._client = client
        self._checked = checked

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def client(self) -> Any:
        """The client of obstore."""
        return self._client

    def check(self) -> None:
        self._checked = True  # the check itself puts files
        try:
            check_creates_once(
                self,
                "this store ignores the condition of a put (If-None-Match) and would replace a file: "
                "no place for generations",
            )
        except BaseException:
            self._checked = False
            raise

    def put_new(self, path: str, data: bytes | BinaryIO) -> bool:
        checked_path(path)
        if not self._checked:
            self.check()
        try:
            # One request: not every bucket makes an upload in parts conditional.
            obstore.put(self._client, path, data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        except NotSupportedError as error:
            raise StoreFailed(
                f"{self._uri}: this store has no conditional put, so a name could be created twice: no place for "
                f"generations ({obstore_message(error)})"
            ) from error
        except (BaseError, OSError, ValueError) as error:
            raise self._failed("cannot write", path, error) from error
        return True

    def put_all_new(self, files: Sequence[tuple[str, bytes | BinaryIO]]) -> list[bool]:
        if not self._checked:
            self.check()
        with ThreadPoolExecutor(_PUTS_AT_ONCE) as threads:
            return list(threads.map(lambda file: self.put_new(*file), files))

    def replace(self, path: str, data: bytes | BinaryIO) -> None:
        try:
            obstore.put(self._client, checked_path(path), data, mode="overwrite", use_multipart=False)
        except (BaseError, OSError, ValueError) as error:
            raise self._failed("cannot write", path, error) from error

    def get(self, path: str, limit: int) -> bytes | None:
        try:
            found = obstore.get(self._client, checked_path(path))
            size = int(found.meta["size"])
            if size > limit:
                raise DamagedFile(f"{self._uri}/{path}: {size} bytes, more than {limit}")
            return bytes(found.bytes())
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError, ValueError) as error:
            raise self._failed("cannot read", path, error) from error

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        try:
            data = bytes(obstore.get_range(self._client, checked_path(path), start=start, end=stop))
        except (BaseError, OSError, ValueError) as error:
            raise self._failed("cannot read", path, error) from error
        if len(data) != stop - start:
            raise DamagedFile(f"{self._uri}/{path}: it ends before byte {stop}")
        return data

    def fetch(self, path: str, into: BinaryIO, size: int) -> bool:
        try:
            found = obstore.get(self._client, checked_path(path))
            stored = int(found.meta["size"])
            if stored != size:
                raise DamagedFile(f"{self._uri}/{path}: {stored} bytes where {size} are expected")
            fetched = 0
            for chunk in found.stream(min_chunk_size=CHUNK):
                fetched += len(chunk)
                if fetched <= size:
                    into.write(chunk)
        except (NotFoundError, FileNotFoundError):
            return False
        except (BaseError, ValueError) as error:
            raise self._failed("cannot read", path, error) from error
        if fetched != size:
            raise DamagedFile(f"{self._uri}/{path}: {fetched} bytes where {size} are expected")
        return True

    def list(self, folder: str) -> Iterator[StoredFile]:
        try:
            for batch in obstore.list(self._client, prefix=folder):
                for found in batch:
                    yield StoredFile(found["path"], int(found["size"]), found["last_modified"])
        except (BaseError, OSError, ValueError) as error:
            raise self._failed("cannot list", folder, error) from error

    def delete(self, path: str) -> None:
        try:
            obstore.delete(self._client, checked_path(path))
        except (NotFoundError, FileNotFoundError):
            pass
        except (BaseError, OSError, ValueError) as error:
            raise self._failed("cannot delete", path, error) from error

    def _failed(self, what: str, path: str, error: Exception) -> StoreFailed:
        return StoreFailed(f"{self._uri}: {what} {path}: {obstore_message(error)}")


def obstore_message(error: Exception) -> str:
    """The first line of obstore's message. The rest is a debug print of its structures."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    line = lines[0][:300]
    # Its only text if an endpoint without TLS is not permitted.
    if "http://" in line and line.endswith("builder error"):
        return f"{line}: allow_http=true permits an http:// endpoint"
    if any(host in line for host in _METADATA_HOSTS):
        return f"{line}: the environment has no credentials, and no instance of a cloud gives any"
    return line


def bucket_store(uri: str, options: Mapping[str, str], *, checked: bool = False) -> BucketStore:
    """The store of a bucket. Raises :exc:`StoreFailed` for an invalid address or option."""
    return BucketStore(uri, bucket_client(uri, options), checked=checked)


def bucket_client(uri: str, options: Mapping[str, str]) -> Any:
    """The client of a bucket's folder. Raises :exc:`StoreFailed` for an invalid address or option."""
    parts = urlsplit(uri)
    if parts.netloc.lower() != (parts.hostname or "") or parts.query or parts.fragment:
        raise StoreFailed(
            f"{parts.scheme}://{parts.hostname or ''}{parts.path}: credentials and options are not part of the address"
        )
    if not parts.hostname:
        raise StoreFailed(f"{uri}: the address names no bucket")
    prefix = _PREFIXES[parts.scheme]
    config = {
        name if name.startswith(prefix) else prefix + name: value
        for name, value in options.items()
        if name not in _CLIENT_OPTIONS
    }
    client_options = {name: value for name, value in options.items() if name in _CLIENT_OPTIONS}
    try:
        client: Any = from_url(uri, config=config, client_options=client_options or None)  # type: ignore[call-overload]
    except (BaseError, OSError, ValueError, TypeError) as error:
        raise StoreFailed(f"{uri}: {obstore_message(error)}") from None
    return client


@lru_cache(maxsize=64)
def memory_store(name: str) -> BucketStore:
    """The store of a name in this process's memory, for tests and demonstrations."""
    return BucketStore(f"memory://{name}", MemoryStore())
