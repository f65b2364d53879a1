from __future__ import annotations

from broker_core.catalog.store.kafka_administration import AclRow, change_acls, read_acls
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.names import NamespaceName

NAMESPACE = NamespaceName("public", "default")
READ = AclRow(2, "orders", 3, "User:app", "*", 3, 3)


def test_the_changed_bindings_are_counted(catalog: SqliteCatalog) -> None:
    connection = catalog.connect()
    assert change_acls(connection, NAMESPACE, [READ, READ], []) == 1
    assert change_acls(connection, NAMESPACE, [READ], []) == 0
    assert change_acls(connection, NAMESPACE, [READ], [READ]) == 2
    assert read_acls(connection, NAMESPACE) == (READ,)
    connection.close()


def test_each_column_tells_bindings_apart(catalog: SqliteCatalog) -> None:
    others = [READ._replace(**{column: READ._asdict()[column] * 2}) for column in AclRow._fields]
    connection = catalog.connect()
    assert change_acls(connection, NAMESPACE, [READ, *others], []) == 8
    assert change_acls(connection, NAMESPACE, [], [READ]) == 1
    assert set(read_acls(connection, NAMESPACE)) == set(others)
    connection.close()
