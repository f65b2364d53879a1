"""Addresses of sources: a table that Spark reads, or a file by its path."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from broker_core_spark.batch.errors import InvalidCatalogue

__all__ = ["is_table", "path_of"]


def is_table(source: str) -> bool:
    """Whether Spark reads the source, through the session's connectors."""
    return source.startswith("table:") or source.partition("?")[0].rstrip("/").endswith(".parquet")


def path_of(source: str) -> Path:
    """The path of a file, from a path or ``file://``. Raises :exc:`InvalidCatalogue` for other addresses."""
    if source.startswith("file:"):
        return Path(unquote(urlsplit(source).path))
    if "://" in source:
        raise InvalidCatalogue(
            f"No catalogue of the kind {source.partition('://')[0]!r}: use a path, postgresql://, table:NAME, "
            "or a .parquet file"
        )
    return Path(source)
