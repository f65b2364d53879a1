from __future__ import annotations

from typing import Any

import pytest

from broker_core.client import UnexpectedAnswer
from broker_core.client.kafka import (
    AclBinding,
    AclFilter,
    AdminClient,
    InvalidRequestException,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    SecurityDisabledException,
)
from broker_core.wire.kafka import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from tests.support.scripted_kafka import ScriptedKafka

READ = AclBinding(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW
)
WRITE = READ._replace(operation=Operation.WRITE, permission=Permission.DENY)
RESOURCE: dict[str, Any] = {"resource_type": 2, "resource_name": "orders", "pattern_type": 3}
ACL: dict[str, Any] = {"principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}


#: What a request says that asks for the first page.
FIRST_PAGE = {"response_pagination_limit": 2000, "cursor": None}


async def test_bindings_that_match(client: AdminClient, node: ScriptedKafka) -> None:
    acls = [ACL, ACL | {"operation": 4, "permission_type": 2}]
    node.handlers[DESCRIBE_ACLS] = lambda _: {"resources": [RESOURCE | {"acls": acls}]}
    wanted = AclFilter(ResourceType.TOPIC, "orders", PatternType.MATCH)
    found = await client.describe_acls(wanted)
    assert (list(found), found.paged_by) == ([READ, WRITE], None)
    everything = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    some = {"resource_type_filter": 2, "resource_name_filter": "orders", "pattern_type_filter": 2}
    assert node.of(DESCRIBE_ACLS) == [everything | some | FIRST_PAGE]
    await client.describe_acls()
    assert node.of(DESCRIBE_ACLS)[-1] == everything | FIRST_PAGE


async def test_words_of_a_later_kafka_are_unknown(client: AdminClient, node: ScriptedKafka) -> None:
    resource, acl = RESOURCE | {"pattern_type": 77}, ACL | {"operation": 77}
    node.handlers[DESCRIBE_ACLS] = lambda _: {"resources": [resource | {"acls": [acl]}]}
    (found,) = await client.describe_acls()
    assert (found.pattern, found.operation) == (PatternType.UNKNOWN, Operation.UNKNOWN)


async def test_a_server_without_an_authorizer(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[DESCRIBE_ACLS] = lambda _: {"error_code": 54, "error_message": "no authorizer"}
    with pytest.raises(SecurityDisabledException, match="no authorizer"):
        await client.describe_acls()


async def test_adding(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[CREATE_ACLS] = lambda _: {"results": [{}, {"error_code": 42, "error_message": "odd"}]}
    result = await client.create_acls([READ, WRITE, READ])
    assert result[READ] is None
    with pytest.raises(InvalidRequestException, match="odd"):
        result[WRITE]
    first = {"resource_type": 2, "resource_name": "orders", "resource_pattern_type": 3} | ACL
    second = first | {"operation": 4, "permission_type": 2}
    assert node.of(CREATE_ACLS)[0]["creations"] == [first, second]


async def test_removing(client: AdminClient, node: ScriptedKafka) -> None:
    rows = [
        {
            "matching_acls": [
                RESOURCE | ACL,
                RESOURCE | ACL | {"operation": 4, "permission_type": 2, "error_code": 42},
            ]
        },
        {"error_code": 54},
    ]
    node.handlers[DELETE_ACLS] = lambda _: {"filter_results": rows}
    everything, some = AclFilter(), AclFilter(name="x")
    result = await client.delete_acls([everything, some])
    assert result[everything][READ] is None
    with pytest.raises(InvalidRequestException):
        result[everything].all()
    with pytest.raises(SecurityDisabledException):
        result[some]


async def test_rows_that_do_not_fit(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[CREATE_ACLS] = lambda _: {"results": []}
    with pytest.raises(UnexpectedAnswer, match="asked for 1 row, and got 0"):
        await client.create_acls([READ])


async def test_nothing_is_not_asked(client: AdminClient, node: ScriptedKafka) -> None:
    assert (await client.create_acls([])).all() == {}
    assert (await client.delete_acls([])).all() == {}
    assert node.asked == []
