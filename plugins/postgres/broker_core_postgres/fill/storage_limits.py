"""What the database can hold of what a catalogue or a cluster can: properties without NUL, names that fit its index."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from broker_core.catalog import CatalogError, check_properties
from broker_core.names import NamespaceName

__all__ = ["first_too_long", "longest_local_name", "storable_properties"]

#: Bytes (UTF-8) of a namespace and twice a local name, as the table's own constraint has it.
_FIT_AN_INDEX: Final = 2_600


def storable_properties(properties: object) -> str:
    """The JSON text of properties, in the order of their keys.

    Raises :exc:`~broker_core.catalog.CatalogError` for what are no properties (a value that is no string, more
    than 64 KiB) and for those that PostgreSQL's jsonb cannot hold.
    """
    checked = check_properties(properties)
    if any("\0" in word for pair in checked.items() for word in pair):
        raise CatalogError("a property has a NUL character, which PostgreSQL cannot hold")
    return json.dumps(checked, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if checked else "{}"


def longest_local_name(namespace: NamespaceName) -> int:
    """The most bytes (UTF-8) of a local name in a namespace."""
    return (_FIT_AN_INDEX - len(str(namespace))) // 2


def first_too_long(namespace: NamespaceName, names: Iterable[str]) -> str | None:
    """The first name that the database cannot hold."""
    longest = longest_local_name(namespace)
    for name in names:
        if len(name) * 4 > longest and len(name.encode()) > longest:
            return name
    return None
