"""A store in a bucket (S3, GCS, Azure) or in memory, by obstore. Conditional puts create each name once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, NotSupportedError
from obstore.store import MemoryStore, from_url

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.store import CHUNK, FileData, Store, StoredFile

__all__ = ["ERRORS", "PREFIXES", "BucketStore", "bucket_client", "obstore_message"]

#: Schemes, and the prefix of each one's options, which operators may leave out.
PREFIXES: Final = {
    "memory": "",
    "s3": "aws_",
    "s3a": "aws_",
    "gs": "google_",
    "az": "azure_",
    "abfs": "azure_",
    "abfss": "azure_",
}
#: The errors of obstore and of the data that it is given.
ERRORS: Final = (BaseError, OSError, ValueError)
#: Options of the connection rather than of the store.
_CLIENT_OPTIONS: Final = frozenset(
    {"allow_http", "connect_timeout", "timeout", "proxy_url", "pool_max_idle_per_host"}
)


class BucketStore(Store):
    """A store over a ``client`` of obstore."""

    creates_twice = (
        "this store ignores the condition of a put (If-None-Match) "
        "and would replace a file: no place for generations"
    )
    puts_at_once = 8
    missing = (NotFoundError, FileNotFoundError)

    def __init__(self, uri: str, client: Any, *, checked: bool = False) -> None:
        super().__init__(uri, checked=checked, errors=ERRORS, reason=obstore_message)
        self._client = client

    def _put(self, path: str, data: FileData, replace: bool) -> bool:
        with self._failing(f"write {path}"):
            try:
                # One request: not every bucket makes an upload in parts conditional.
                obstore.put(
                    self._client, path, data, mode="overwrite" if replace else "create", use_multipart=False
                )
            except AlreadyExistsError:
                return False
            except NotSupportedError as error:
                raise StoreFailed(
                    f"{self.uri}: this store has no conditional put, so a name could be created twice: no place for "
                    f"generations ({obstore_message(error)})"
                ) from error
        return True

    @contextmanager
    def _reading(self, path: str) -> Iterator[tuple[int, Iterator[bytes]]]:
        found = obstore.get(self._client, path)
        yield int(found.meta["size"]), map(bytes, found.stream(min_chunk_size=CHUNK))

    def _range(self, path: str, start: int, stop: int) -> bytes:
        return bytes(obstore.get_range(self._client, path, start=start, end=stop))

    def _list(self, folder: str) -> Iterator[StoredFile]:
        for batch in obstore.list(self._client, prefix=folder):
            for found in batch:
                yield StoredFile(found["path"], int(found["size"]), found["last_modified"])

    def _delete(self, path: str) -> None:
        obstore.delete(self._client, path)


def obstore_message(error: Exception) -> str:
    """The first line of obstore's message. The rest is a debug print of its structures."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    # Its only text if an endpoint without TLS is not permitted.
    if "http://" in line and line.endswith("builder error"):
        return f"{line}: allow_http=true permits an http:// endpoint"
    # Hosts that give an instance of a cloud its credentials: asked if the environment has none.
    if "169.254.169.254" in line or "metadata.google.internal" in line:
        return f"{line}: the environment has no credentials, and no instance of a cloud gives any"
    return line


def bucket_client(uri: str, options: Mapping[str, str]) -> Any:
    """The client of a bucket's folder, or of memory. Raises :exc:`StoreFailed` for an invalid address or option."""
    if uri.startswith("memory://"):
        return _memory_client(uri)
    parts = urlsplit(uri)
    if parts.netloc.lower() != (parts.hostname or "") or parts.query or parts.fragment:
        raise StoreFailed(
            f"{parts.scheme}://{parts.hostname or ''}{parts.path}: credentials and options are not part of the address"
        )
    if not parts.hostname:
        raise StoreFailed(f"{uri}: the address names no bucket")
    prefix = PREFIXES[parts.scheme]
    config = {
        name if name.startswith(prefix) else prefix + name: value
        for name, value in options.items()
        if name not in _CLIENT_OPTIONS
    }
    client_options = {name: value for name, value in options.items() if name in _CLIENT_OPTIONS}
    try:
        return from_url(uri, config=config, client_options=client_options or None)  # type: ignore[call-overload]
    except (*ERRORS, TypeError) as error:
        raise StoreFailed(f"{uri}: {obstore_message(error)}") from None


@lru_cache(maxsize=64)
def _memory_client(_uri: str) -> Any:
    """The client of an address in this process's memory, for tests and demonstrations."""
    return MemoryStore()
