"""The names that a new topic cannot have in Kafka: names of existing topics, and names that collide with them.

Two names collide if they are equal with ``_`` for ``.``. They are searched from one such mark to the next, as far as
any topic begins so: a name of twenty marks would have a million spellings.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from broker_core.compact_json import compact_json
from broker_core.names import DOMAINS, PERSISTENT, NamespaceName

__all__ = ["taken_names"]

_TOPICS: Final = "topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ?"
#: The given beginnings, up to a mark, that a topic has. After the marks come the characters ``/`` and `````.
_BEGINNINGS: Final = (
    f"SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM {_TOPICS} AND base >= value"  # noqa: S608 - constants
    " AND base < substr(value, 1, length(value) - 1) || CASE substr(value, -1) WHEN '.' THEN '/' ELSE '`' END)"
)
_NAMES: Final = f"SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM {_TOPICS} AND base = value)"  # noqa: S608


def taken_names(
    connection: sqlite3.Connection, namespace: NamespaceName, names: Iterable[str]
) -> dict[str, str]:
    """The topic that has each taken name, or else the first topic that collides with it, by local name."""

    def there(statement: str, spellings: list[str]) -> list[str]:
        values = (compact_json(spellings), str(namespace), DOMAINS.index(PERSISTENT))
        return [value for (value,) in connection.execute(statement, values)]

    by_key: dict[str, list[str]] = {}
    for name in names:
        by_key.setdefault(_key(name), []).append(name)
    whole: list[str] = []
    # The length up to which each key was searched, and by that beginning of it all spellings that topics have.
    reached = dict.fromkeys(by_key, 0)
    spelled = {"": [""]}
    while reached:
        longer: dict[str, int] = {}
        spellings: dict[str, list[str]] = {}
        for key, start in reached.items():
            before = spelled.get(key[:start], ())
            end = key.find("_", start) + 1
            if not end:
                whole += [each + key[start:] for each in before]
            elif before:
                longer[key] = end
                if key[:end] not in spellings:
                    part = key[start : end - 1]
                    spellings[key[:end]] = [each + part + mark for each in before for mark in "._"]
        spelled = {}
        for each in there(_BEGINNINGS, [each for some in spellings.values() for each in some]):
            spelled.setdefault(_key(each), []).append(each)
        reached = longer
    taken: dict[str, str] = {}
    for base in sorted(there(_NAMES, whole), reverse=True):
        for name in by_key[_key(base)]:
            if taken.get(name) != name:
                taken[name] = base
    return taken


def _key(name: str) -> str:
    return name.replace(".", "_")
