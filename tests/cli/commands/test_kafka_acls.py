from __future__ import annotations

from pathlib import Path

from broker_core.catalog import SqliteCatalog
from broker_core.names import NamespaceName
from tests.cli.conftest import Cli


def test_bindings_are_added_listed_and_removed(cli: Cli, tmp_path: Path) -> None:
    catalog = tmp_path / "c.sqlite"
    asked = (
        *(
            "a/b",
            "--allow-principal",
            "User:alice",
            "--operation",
            "Describe",
            "--operation",
            "alter-configs",
        ),
        *("--topic", "orders", "--resource-pattern-type", "prefixed", "--catalog", catalog),
    )
    said = cli("kafka", "acls", "add", *asked)
    bindings = [
        "allow User:alice from *: DESCRIBE on topic prefixed orders",
        "allow User:alice from *: ALTER_CONFIGS on topic prefixed orders",
    ]
    assert said.out.splitlines() == bindings
    assert "from now on Kafka clients may do what an ACL or kafka.super_users allows them" in said.err
    again = cli("kafka", "acls", "add", *asked)
    assert "from now on" not in again.err
    assert "nothing changed" in again.err
    assert cli("kafka", "acls", "list", "a/b", "--catalog", catalog).out.splitlines() == bindings
    assert cli("kafka", "acls", "list", "a/c", "--catalog", catalog).out == ""
    removed = cli("kafka", "acls", "remove", *asked)
    assert removed.out.splitlines() == [f"removed {each}" for each in bindings]
    assert "There is no binding in a/b: allow User:alice" in cli("kafka", "acls", "remove", *asked).only_error
    with SqliteCatalog(catalog) as opened:
        assert opened.kafka_acl_version(NamespaceName.parse("a/b")) == 2


def test_one_that_is_missing_keeps_the_others(cli: Cli, tmp_path: Path) -> None:
    catalog = tmp_path / "c.sqlite"
    of = ("a/b", "--deny-principal", "User:*", "--host", "192.0.2.1", "--cluster", "--catalog", catalog)
    cli("kafka", "acls", "add", *of)
    assert cli("kafka", "acls", "remove", *of, "--host", "192.0.2.2").code == 1
    listed = cli("kafka", "acls", "list", "a/b", "--catalog", catalog).out
    assert listed == "deny User:* from 192.0.2.1: ALL on cluster kafka-cluster\n"
