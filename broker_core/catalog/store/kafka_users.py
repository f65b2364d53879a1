"""The users of Kafka's listener with SCRAM credentials."""

from __future__ import annotations

import sqlite3

from broker_core.catalog.store.kafka_rows import ScramRow

__all__ = ["put_user", "read_user", "read_users", "remove_user"]

_USERS = "SELECT name, mechanism, iterations, salt, stored_key, server_key FROM kafka_users"


def read_user(connection: sqlite3.Connection, name: str, mechanism: str) -> ScramRow | None:
    """The credential of a user for one mechanism."""
    row = connection.execute(f"{_USERS} WHERE name = ? AND mechanism = ?", (name, mechanism)).fetchone()
    return None if row is None else ScramRow(*row)


def read_users(connection: sqlite3.Connection) -> list[ScramRow]:
    """All credentials, by name and mechanism."""
    return [ScramRow(*row) for row in connection.execute(f"{_USERS} ORDER BY name, mechanism")]


def put_user(connection: sqlite3.Connection, row: ScramRow) -> None:
    """Add a credential, or replace the one of this name and mechanism."""
    connection.execute("INSERT OR REPLACE INTO kafka_users VALUES (?, ?, ?, ?, ?, ?)", row)


def remove_user(connection: sqlite3.Connection, name: str, mechanism: str) -> bool:
    """Remove a credential; false if there is none."""
    return bool(
        connection.execute(
            "DELETE FROM kafka_users WHERE name = ? AND mechanism = ?", (name, mechanism)
        ).rowcount
    )
