"""Addresses of stores: a path, ``file://``, a bucket, or memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.store import Store

__all__ = ["local_path", "open_store"]


def open_store(uri: str, options: Mapping[str, str] | None = None, *, staged: str | None = None) -> Store:
    """The store at a path, or at ``file://``, ``s3://``, ``gs://``, ``az://`` or ``memory://NAME``.

    ``options`` are obstore's for buckets (``endpoint``, ``region`` ...). Credentials come from the environment, the
    instance or a file, never from the address. ``memory://`` lives in this process. ``staged`` is given in a task of a
    build, whose driver has checked the place: names of unfinished files begin with it. Raises :exc:`StoreFailed` for
    any other address.
    """
    scheme, separator, rest = uri.partition("://")
    if not separator:
        if not uri:
            raise StoreFailed("the address of the store is empty")
        return _folder(Path(uri), staged)
    if scheme == "file":
        return _folder(local_path(uri), staged)
    from broker_core_spark.store import bucket_store

    if scheme == "memory":
        return bucket_store.memory_store(rest)
    if scheme in bucket_store.BUCKET_SCHEMES:
        return bucket_store.bucket_store(uri, options or {}, checked=staged is not None)
    raise StoreFailed(
        f"{scheme}:// is no place for generations: a path, file://, s3://, gs://, az:// or memory://"
    )


def local_path(uri: str) -> Path:
    """The path of ``file:///...``. Raises :exc:`StoreFailed` for an address with a host."""
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise StoreFailed(f"{uri}: a file address has no host (three slashes: file:///...)")
    return Path(unquote(parts.path))


def _folder(path: Path, staged: str | None) -> Store:
    from broker_core_spark.store.folder_store import FolderStore

    return FolderStore(path, staged)
