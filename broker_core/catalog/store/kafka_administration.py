"""Kafka's administration in the catalogue's file: names, access control lists of namespaces, users with credentials."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final, NamedTuple

from broker_core.catalog.store.catalog_connections import CatalogConnections
from broker_core.catalog.store.taken_names import taken_names
from broker_core.names import NamespaceName

__all__ = [
    "AclRow",
    "KafkaAdministration",
    "ScramRow",
    "any_acls",
    "change_acls",
    "read_acl_version",
    "read_acls",
]


class AclRow(NamedTuple):
    """One binding of an access control list; enumerations are Kafka's numbers.

    ``principal`` is ``User:NAME`` or ``User:*``, ``host`` an address or ``*``.
    """

    resource_type: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


class ScramRow(NamedTuple):
    """The SCRAM credential of a user of RFC 5802; its keys are secret, and not shown in its ``repr``."""

    name: str
    mechanism: str
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramRow(name={self.name!r}, mechanism={self.mechanism!r}, iterations={self.iterations})"


_COLUMNS: Final = "resource_type, name, pattern, principal, host, operation, permission"
_ADD: Final = f"INSERT OR IGNORE INTO kafka_acls (namespace, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_REMOVE: Final = (
    "DELETE FROM kafka_acls WHERE namespace = ? AND "  # noqa: S608 - constants
    + " AND ".join(f"{column} = ?" for column in _COLUMNS.split(", "))
)
_BUMP: Final = (
    "INSERT INTO kafka_acl_versions VALUES (?, 1) ON CONFLICT (namespace) DO UPDATE SET version = version + 1"
)


def read_acl_version(connection: sqlite3.Connection, namespace: NamespaceName) -> int:
    """A number that grows with each change of a namespace's bindings; 0 before the first."""
    row = connection.execute(
        "SELECT version FROM kafka_acl_versions WHERE namespace = ?", (str(namespace),)
    ).fetchone()
    return 0 if row is None else int(row[0])


def read_acls(connection: sqlite3.Connection, namespace: NamespaceName) -> tuple[AclRow, ...]:
    """All bindings of a namespace, in the order of their columns."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM kafka_acls WHERE namespace = ? ORDER BY {_COLUMNS}",  # noqa: S608 - constants
        (str(namespace),),
    )
    return tuple(AclRow(*row) for row in rows)


def any_acls(connection: sqlite3.Connection) -> bool:
    """Whether any namespace has a binding."""
    return connection.execute("SELECT 1 FROM kafka_acls LIMIT 1").fetchone() is not None


def change_acls(
    connection: sqlite3.Connection, namespace: NamespaceName, add: Iterable[AclRow], remove: Iterable[AclRow]
) -> int:
    """Remove bindings, then add others, within the caller's transaction; returns how many were changed.

    Bindings that are there already are not added, and missing ones are not removed.
    """
    text = str(namespace)
    before = connection.total_changes
    connection.executemany(_REMOVE, ((text, *row) for row in remove))
    connection.executemany(_ADD, ((text, *row) for row in add))
    changed = connection.total_changes - before
    if changed:
        connection.execute(_BUMP, (text,))
    return changed


_USERS: Final = "SELECT name, mechanism, iterations, salt, stored_key, server_key FROM kafka_users"
_REMOVE_USER: Final = "DELETE FROM kafka_users WHERE name = ? AND mechanism = ?"


class KafkaAdministration(CatalogConnections):
    """Kafka's administration as the catalogue stores it beside topics."""

    def taken_names(self, namespace: NamespaceName, names: Iterable[str]) -> dict[str, str]:
        """The topic that has each taken local name, or else the first topic that collides with it, by name."""
        with self.reading() as connection:
            return taken_names(connection, namespace, names)

    def kafka_acls(self, namespace: NamespaceName) -> tuple[int, tuple[AclRow, ...]]:
        """The version of a namespace's access control lists, and all of their bindings."""
        with self.reading() as connection:
            return read_acl_version(connection, namespace), read_acls(connection, namespace)

    def has_kafka_acls(self) -> bool:
        """Whether access control lists of any namespace are stored."""
        with self.reading() as connection:
            return any_acls(connection)

    def change_kafka_acls(
        self, namespace: NamespaceName, add: Iterable[AclRow] = (), remove: Iterable[AclRow] = ()
    ) -> int:
        """Remove bindings, then add others, in one transaction; returns the version after it."""
        with self._writing_rows() as connection:
            change_acls(connection, namespace, add, remove)
            return read_acl_version(connection, namespace)

    def kafka_user(self, name: str, mechanism: str) -> ScramRow | None:
        """The SCRAM credential of a user for one mechanism."""
        with self.reading() as connection:
            row = connection.execute(
                f"{_USERS} WHERE name = ? AND mechanism = ?", (name, mechanism)
            ).fetchone()
        return None if row is None else ScramRow(*row)

    def kafka_users(self) -> list[ScramRow]:
        """All SCRAM credentials, by name and mechanism."""
        with self.reading() as connection:
            return [ScramRow(*row) for row in connection.execute(f"{_USERS} ORDER BY name, mechanism")]

    def put_kafka_user(self, *rows: ScramRow) -> None:
        """Add SCRAM credentials, replacing those with the same name and mechanism, in one transaction."""
        with self._writing_rows() as connection:
            connection.executemany("INSERT OR REPLACE INTO kafka_users VALUES (?, ?, ?, ?, ?, ?)", rows)

    def remove_kafka_user(self, name: str, *mechanisms: str) -> list[str]:
        """Remove a user's SCRAM credentials for mechanisms, in one transaction; returns the mechanisms that had one."""
        with self._writing_rows() as connection:
            return [each for each in mechanisms if connection.execute(_REMOVE_USER, (name, each)).rowcount]
