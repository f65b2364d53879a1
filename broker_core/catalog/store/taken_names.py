"""The names that a new topic cannot have in Kafka: those of topics that are there, and those that collide with them.

Two names collide that are the same with ``_`` for ``.``.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

from broker_core.names import DOMAINS, PERSISTENT, NamespaceName

__all__ = ["taken_names"]

#: Names that are looked up one by one, each in a few microseconds; for more, all names are read once.
_MOST_LOOKUPS: Final = 4096
_NAMESPACE: Final = "(SELECT id FROM namespaces WHERE name = ?)"
_LOOKUP: Final = (
    "SELECT base FROM json_each(?) CROSS JOIN topics"  # noqa: S608 - constants
    f" WHERE namespace = {_NAMESPACE} AND domain = ? AND base = value"
)
_SCAN: Final = (
    f"SELECT base FROM topics WHERE namespace = {_NAMESPACE} AND domain = ?"  # noqa: S608 - constants
    " AND replace(base, '.', '_') IN (SELECT value FROM json_each(?))"
)


def taken_names(
    connection: sqlite3.Connection, namespace: NamespaceName, names: Iterable[str]
) -> dict[str, str]:
    """By each of these local names that is taken, the topic that has it or else the first that collides with it."""
    by_key: dict[str, list[str]] = {}
    for name in names:
        by_key.setdefault(_key(name), []).append(name)
    where = (str(namespace), DOMAINS.index(PERSISTENT))
    looked_up: list[str] = []
    scanned: list[str] = []
    left = _MOST_LOOKUPS
    for key in by_key:
        count = 1 << min(key.count("_"), _MOST_LOOKUPS.bit_length())
        if count > left:
            scanned.append(key)
        else:
            left -= count
            looked_up.extend(_variants(key))
    found = [base for (base,) in connection.execute(_LOOKUP, (json.dumps(looked_up), *where))]
    if scanned:
        found += [base for (base,) in connection.execute(_SCAN, (*where, json.dumps(scanned)))]
    taken: dict[str, str] = {}
    for base in sorted(found, reverse=True):
        for name in by_key[_key(base)]:
            if taken.get(name) != name:
                taken[name] = base
    return taken


def _key(name: str) -> str:
    return name.replace(".", "_")


def _variants(key: str) -> Iterator[str]:
    """All names with this key."""
    first, *rest = key.split("_")
    for marks in itertools.product("._", repeat=len(rest)):
        yield first + "".join(itertools.chain.from_iterable(zip(marks, rest, strict=True)))
