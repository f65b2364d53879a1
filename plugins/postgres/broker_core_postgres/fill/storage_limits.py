"""Limits of the database for names and properties: no NUL in properties, names that fit an index."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from broker_core.catalog import CatalogError, check_properties
from broker_core.names import NamespaceName

__all__ = ["first_too_long", "longest_local_name", "storable_properties"]

#: Bytes (UTF-8) of a namespace and twice a local name: the limit of the table's constraint.
_FIT_AN_INDEX: Final = 2_600


def storable_properties(properties: object) -> str:
    """The JSON text of properties, ordered by key.

    Raises :exc:`~broker_core.catalog.CatalogError` for values that are no strings, for more than 64 KiB, and for text
    that jsonb cannot hold.
    """
    checked = check_properties(properties)
    if any("\0" in word for pair in checked.items() for word in pair):
        raise CatalogError("a property has a NUL character, which PostgreSQL cannot hold")
    return json.dumps(checked, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if checked else "{}"


def longest_local_name(namespace: NamespaceName) -> int:
    """The limit of a local name in a namespace, in bytes (UTF-8)."""
    return (_FIT_AN_INDEX - len(str(namespace))) // 2


def first_too_long(namespace: NamespaceName, names: Iterable[str]) -> str | None:
    """The first name above the limit; ``None`` if all fit."""
    longest = longest_local_name(namespace)
    for name in names:
        if len(name) * 4 > longest and len(name.encode()) > longest:
            return name
    return None
