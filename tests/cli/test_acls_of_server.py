from __future__ import annotations

from typing import Any

from broker_core.wire.kafka import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread

RESOURCE: dict[str, Any] = {"resource_type": 2, "resource_name": "orders", "pattern_type": 3}
ACL: dict[str, Any] = {"principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
SHOWN = "allow User:a from *: READ on topic orders"
GIVEN = ("--allow-principal", "User:a", "--operation", "read", "--topic", "orders", "--bootstrap")


def test_listing(cli: Cli) -> None:
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


def test_adding(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({CREATE_ACLS: lambda _: {"results": [{}]}})) as server:
        assert cli("kafka", "acls", "add", *GIVEN, server.address).out == f"{SHOWN}\n"
        assert server.of(CREATE_ACLS)[0]["creations"][0]["resource_name"] == "orders"
        server.handlers[CREATE_ACLS] = lambda _: {"results": [{"error_code": 31, "error_message": "no"}]}
        said = cli("kafka", "acls", "add", *GIVEN, server.address)
        assert said.only_error == f"{SHOWN}: CLUSTER_AUTHORIZATION_FAILED: no"


def test_removing(cli: Cli) -> None:
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
        said = cli("kafka", "acls", "list", *arguments)
        assert said.code == 2
        assert "one of the two" in said.only_error
