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
    if not uri:
        raise StoreFailed("the address of the store is empty")
    scheme, separator, _ = uri.partition("://")
    if not separator or scheme == "file":
        from broker_core_spark.store.folder_store import FolderStore

        return FolderStore(local_path(uri), staged)
    from broker_core_spark.store import bucket_store

    if scheme not in bucket_store.PREFIXES:
        raise StoreFailed(
            f"{scheme}:// is no place for generations: a path, file://, s3://, gs://, az:// or memory://"
        )
    client = bucket_store.bucket_client(uri, options or {})
    return bucket_store.BucketStore(uri, client, checked=staged is not None)


def local_path(uri: str) -> Path:
    """A path, or that of ``file:///...``. Raises :exc:`StoreFailed` for an address with a host."""
    if "://" not in uri:
        return Path(uri)
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise StoreFailed(f"{uri}: a file address has no host (three slashes: file:///...)")
    return Path(unquote(parts.path))
