from __future__ import annotations

from pathlib import Path

from broker_core.catalog.store.kafka_administration import AclRow, ScramRow
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.names import NamespaceName

NAMESPACE = NamespaceName("public", "default")
READ = AclRow(2, "orders", 3, "User:app", "*", 3, 3)
DENY = AclRow(2, "orders", 4, "User:*", "127.0.0.1", 4, 2)
USER = ScramRow("app", "SCRAM-SHA-256", 4096, b"salt\0", b"stored", b"server")


def test_acls_are_of_a_namespace_and_each_change_is_a_version(catalog: SqliteCatalog) -> None:
    assert catalog.kafka_acls(NAMESPACE) == (0, ())
    assert not catalog.has_kafka_acls()
    assert catalog.change_kafka_acls(NAMESPACE, add=[DENY, READ, READ]) == 1
    assert catalog.has_kafka_acls()
    assert catalog.kafka_acls(NAMESPACE) == (1, (READ, DENY))
    assert catalog.kafka_acls(NamespaceName("acme", "orders")) == (0, ())
    assert catalog.change_kafka_acls(NAMESPACE, remove=[READ]) == 2
    assert catalog.kafka_acls(NAMESPACE) == (2, (DENY,))
    assert catalog.change_kafka_acls(NAMESPACE, add=[READ], remove=[DENY]) == 3, "both are one change"
    assert catalog.kafka_acls(NAMESPACE)[1] == (READ,)


def test_what_is_there_or_gone_already_changes_nothing(catalog: SqliteCatalog) -> None:
    catalog.change_kafka_acls(NAMESPACE, add=[READ])
    committed = catalog.committed
    assert catalog.change_kafka_acls(NAMESPACE, add=[READ], remove=[DENY]) == 1
    assert catalog.change_kafka_acls(NAMESPACE) == 1
    assert catalog.committed == committed


def test_no_topic_changes_with_an_acl(catalog: SqliteCatalog) -> None:
    before = catalog.version(NAMESPACE)
    catalog.change_kafka_acls(NAMESPACE, add=[READ])
    assert catalog.version(NAMESPACE) == before
    assert catalog.namespaces() == []


def test_users_are_put_replaced_and_removed(catalog: SqliteCatalog) -> None:
    assert catalog.kafka_user("app", "SCRAM-SHA-256") is None
    other = USER._replace(name="Ünïcode'; --", mechanism="SCRAM-SHA-512")
    catalog.put_kafka_user(other, USER)
    assert catalog.kafka_users() == [USER, other]
    assert catalog.kafka_user(other.name, "SCRAM-SHA-512") == other
    newer = USER._replace(salt=b"pepper", iterations=8192)
    catalog.put_kafka_user(newer)
    assert catalog.kafka_user("app", "SCRAM-SHA-256") == newer
    assert catalog.remove_kafka_user("app", "SCRAM-SHA-512", "SCRAM-SHA-256") == ["SCRAM-SHA-256"]
    assert not catalog.remove_kafka_user("app", "SCRAM-SHA-256")
    assert catalog.kafka_users() == [other]


def test_another_object_of_the_file_sees_them_at_once(catalog: SqliteCatalog, tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as same:
        same.put_kafka_user(USER)
        same.change_kafka_acls(NAMESPACE, add=[READ])
        assert catalog.kafka_users() == [USER]
        assert catalog.kafka_acls(NAMESPACE) == (1, (READ,))
