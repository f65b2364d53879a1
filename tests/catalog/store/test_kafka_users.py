from __future__ import annotations

from broker_core.catalog.store.kafka_rows import ScramRow
from broker_core.catalog.store.kafka_users import put_user, read_user, read_users, remove_user
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog

USER = ScramRow("app", "SCRAM-SHA-256", 4096, b"salt\0", b"stored", b"server")


def test_bytes_and_names_come_back_as_they_were(catalog: SqliteCatalog) -> None:
    odd = USER._replace(name="Ünïcode'; --")
    connection = catalog.connect()
    for row in (USER, odd):
        put_user(connection, row)
        assert read_user(connection, row.name, row.mechanism) == row
    assert read_users(connection) == [USER, odd]
    assert not remove_user(connection, "app", "SCRAM-SHA-512")
    assert remove_user(connection, "app", "SCRAM-SHA-256")
    connection.close()
