"""Kafka's administration in the catalogue's file: names, access control lists of namespaces, users with credentials."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from broker_core.catalog.store.catalog_connections import CatalogConnections
from broker_core.catalog.store.kafka_acls import (
    AclRow,
    ScramRow,
    any_acls,
    change_acls,
    read_acl_version,
    read_acls,
)
from broker_core.catalog.store.taken_names import taken_names
from broker_core.names import NamespaceName

__all__ = ["KafkaAdministration"]

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
