from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.names import NamespaceName
from broker_core.wire.kafka import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from tests.cli.conftest import Cli
from tests.support.files import file_with
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread

RESOURCE: dict[str, Any] = {"resource_type": 2, "resource_name": "orders", "pattern_type": 3}
ACL: dict[str, Any] = {"principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
SHOWN = "allow User:a from *: READ on topic orders"
GIVEN = ("--allow-principal", "User:a", "--operation", "read", "--topic", "orders", "--bootstrap")


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
    assert (
        "no ACL is left in any namespace: Kafka clients of a server may do everything, unless" in removed.err
    )
    assert removed.out.splitlines() == [f"removed {each}" for each in bindings]
    assert "There is no binding in a/b: allow User:alice" in cli("kafka", "acls", "remove", *asked).only_error
    with SqliteCatalog(catalog) as opened:
        assert opened.kafka_acls(NamespaceName.parse("a/b"))[0] == 2


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "from now on Kafka clients may do everything, since kafka.super_users is empty"),
        ('super_users = ["User:admin"]', "from now on kafka.super_users alone may do anything"),
        (
            'super_users = ["User:admin"]\nallow_everyone_if_no_acl_found = true',
            "may do everything, as kafka.allow_everyone_if_no_acl_found says",
        ),
        (
            '[authorization]\nsuper_roles = ["admin"]',
            "may do all that [authorization] allows them, since kafka.super_users is empty",
        ),
    ],
)
def test_the_end_of_the_last_acl_is_said_by_the_settings(
    cli: Cli, tmp_path: Path, table: str, said: str
) -> None:
    settings = file_with(
        tmp_path / "settings.toml", f'[kafka]\nlisten = "127.0.0.1:0"\nnamespace = "a/b"\n{table}\n'
    )
    of = ("a/b", "--allow-principal", "User:a", "--topic", "x", "--catalog", tmp_path / "c.sqlite")
    cli("kafka", "acls", "add", *of, "--config", settings)
    assert said in cli("kafka", "acls", "remove", *of, "--config", settings).err


def test_one_that_is_missing_keeps_the_others(cli: Cli, tmp_path: Path) -> None:
    catalog = tmp_path / "c.sqlite"
    of = ("a/b", "--deny-principal", "User:*", "--host", "192.0.2.1", "--cluster", "--catalog", catalog)
    cli("kafka", "acls", "add", *of)
    assert cli("kafka", "acls", "remove", *of, "--host", "192.0.2.2").code == 1
    listed = cli("kafka", "acls", "list", "a/b", "--catalog", catalog).out
    assert listed == "deny User:* from 192.0.2.1: ALL on cluster kafka-cluster\n"


def test_listing_those_of_principals_and_resources(cli: Cli, tmp_path: Path) -> None:
    catalog = tmp_path / "c.sqlite"
    add = ("kafka", "acls", "add", "a/b", "--operation", "Describe", "--catalog", catalog)
    cli(*add, "--allow-principal", "User:alice", "--topic", "public-", "--resource-pattern-type", "prefixed")
    cli(*add, "--allow-principal", "User:bob", "--topic", "*", "--cluster")

    def listed(*options: str) -> list[str]:
        said = cli("kafka", "acls", "list", "a/b", "--catalog", catalog, "--format", "json", *options)
        return [f"{each['principal']} {each['pattern']} {each['name']}" for each in json.loads(said.out)]

    alice, topics, cluster = (
        "User:alice PREFIXED public-",
        "User:bob LITERAL *",
        "User:bob LITERAL kafka-cluster",
    )
    assert sorted(listed()) == sorted([alice, topics, cluster])
    assert listed("--principal", "User:alice") == [alice]
    assert sorted(listed("--principal", "User:alice", "--principal", "User:bob")) == sorted(listed())
    assert listed("--cluster") == [cluster]
    assert listed("--topic", "public-a") == []
    assert sorted(listed("--topic", "public-a", "--resource-pattern-type", "match")) == sorted(
        [alice, topics]
    )
    assert listed("--topic", "*", "--resource-pattern-type", "prefixed") == []
    assert listed("--resource-pattern-type", "prefixed") == [alice]
    said = cli("kafka", "acls", "list", "a/b", "--catalog", catalog, "--cluster", "--format", "json")
    assert json.loads(said.out) == [
        {
            "resource_type": "CLUSTER",
            "name": "kafka-cluster",
            "pattern": "LITERAL",
            "principal": "User:bob",
            "host": "*",
            "operation": "DESCRIBE",
            "permission": "ALLOW",
        }
    ]


def test_listing_at_a_server(cli: Cli) -> None:
    answer = {"resources": [RESOURCE | {"acls": [ACL, ACL | {"operation": 4}]}]}
    with in_a_thread(ScriptedKafka({DESCRIBE_ACLS: lambda _: answer})) as server:
        said = cli("kafka", "acls", "list", "--bootstrap", server.address)
        assert said.out.splitlines() == [SHOWN, SHOWN.replace("READ", "WRITE")]
        two = ("--principal", "User:a", "--topic", "orders", "--topic", "bills")
        said = cli("kafka", "acls", "list", "--bootstrap", server.address, *two)
        assert said.out.splitlines() == [SHOWN, SHOWN.replace("READ", "WRITE")]
        asked = server.of(DESCRIBE_ACLS)[-2:]
        assert [each["resource_name_filter"] for each in asked] == ["orders", "bills"]
        assert {each["principal_filter"] for each in asked} == {"User:a"}


def test_adding_at_a_server(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({CREATE_ACLS: lambda _: {"results": [{}]}})) as server:
        assert cli("kafka", "acls", "add", *GIVEN, server.address).out == f"{SHOWN}\n"
        assert server.of(CREATE_ACLS)[0]["creations"][0]["resource_name"] == "orders"
        server.handlers[CREATE_ACLS] = lambda _: {"results": [{"error_code": 31, "error_message": "no"}]}
        said = cli("kafka", "acls", "add", *GIVEN, server.address)
        assert said.only_error == f"{SHOWN}: CLUSTER_AUTHORIZATION_FAILED: no"


def test_removing_at_a_server(cli: Cli) -> None:
    found = {"filter_results": [{"matching_acls": [RESOURCE | ACL]}]}
    with in_a_thread(ScriptedKafka({DELETE_ACLS: lambda _: found})) as server:
        assert cli("kafka", "acls", "remove", *GIVEN, server.address).out == f"removed {SHOWN}\n"
        asked = server.of(DELETE_ACLS)[0]["filters"][0]
        assert (asked["resource_name_filter"], asked["pattern_type_filter"]) == ("orders", 3)
        server.handlers[DELETE_ACLS] = lambda _: {"filter_results": [{}]}
        said = cli("kafka", "acls", "remove", *GIVEN, server.address)
        assert said.only_error == f"There is no binding: {SHOWN}"


def test_a_namespace_or_a_server(cli: Cli) -> None:
    for arguments in ((), ("a/b", "--bootstrap", "127.0.0.1:1")):
        assert "one of the two" in cli("kafka", "acls", "list", *arguments).refused(2)
