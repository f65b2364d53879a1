"""Versions of a namespace as HTTP clients have them: ``ID:NUMBER.STAMP``."""

from __future__ import annotations

from broker_core.change_log import CatalogVersion

__all__ = ["read_version", "version_text"]


def version_text(version: CatalogVersion) -> str:
    """``ID:NUMBER``, and the stamp that distinguishes it from others of this number, if it is known."""
    return f"{version}.{version.stamp}" if version.stamp else str(version)


def read_version(text: str) -> CatalogVersion:
    """The reverse. Raises :exc:`~broker_core.errors.InvalidName`."""
    head, dot, stamp = text.rpartition(".")
    if not dot:
        return CatalogVersion.parse(text)
    found = CatalogVersion.parse(head)
    return CatalogVersion(found.catalog_id, found.number, stamp)
