"""Kafka's ACLs over HTTP, beside those that Kafka's own protocol sees."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.client.kafka import AclBinding, AclFilter, AdminClient, Scram
from broker_core.servers.http.api.access import kafka_acls
from tests.support.super_roles import SUPER_TABLES, Supers, supers_served

ACLS = "acls/public/default"
ACL = {
    "resource_type": "TOPIC",
    "name": "orders-",
    "pattern": "PREFIXED",
    "principal": "User:erin",
    "host": "*",
    "operation": "DESCRIBE",
    "permission": "ALLOW",
}


@pytest.fixture
async def supers(tmp_path: Path) -> AsyncIterator[Supers]:
    kafka = SUPER_TABLES["kafka"] | {"super_users": ["User:admin"]}
    async with supers_served(tmp_path, kafka=kafka) as served:
        yield served


async def create(supers: Supers, *acls: Any) -> Any:
    return await supers.ask(ACLS, "POST", json={"items": list(acls)})


async def listed(supers: Supers, query: str = "") -> list[Any]:
    said = await supers.ask(f"{ACLS}?{query}")
    assert said.status == 200
    items: list[Any] = said.json["items"]
    return items


async def test_what_is_created_is_what_kafka_sees(supers: Supers) -> None:
    short = {name: value for name, value in ACL.items() if name not in {"pattern", "host"}}
    other = ACL | {"operation": "READ", "permission": "DENY", "host": "192.0.2.1"}
    said = await create(supers, ACL, other, short)
    assert said.status == 200
    assert said.json["items"] == [ACL, other, ACL | {"pattern": "LITERAL"}]
    address = supers.served.broker.kafka_address
    assert address is not None
    body = {"password": "a long password"}
    assert (await supers.ask("users/admin", "PUT", json=body)).status == 201
    async with AdminClient("{}:{}".format(*address), sasl=Scram("admin", body["password"])) as client:
        seen = await client.describe_acls(AclFilter())
    told = [
        (each.name, each.pattern.name, each.principal, each.host, each.operation.name, each.permission.name)
        for each in seen
    ]
    shown = await listed(supers)
    assert sorted(told) == sorted(
        tuple(each[name] for name in ("name", "pattern", "principal", "host", "operation", "permission"))
        for each in shown
    )
    assert len(shown) == 3


async def test_the_objects_of_a_page_are_made_in_a_thread(
    supers: Supers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await create(supers, ACL)).status == 200
    of, on_loop = kafka_acls._Acl.of, list[bool]()

    def made(binding: AclBinding) -> kafka_acls._Acl:
        on_loop.append(threading.current_thread() is threading.main_thread())
        return of(binding)

    monkeypatch.setattr(kafka_acls._Acl, "of", made)
    assert await listed(supers) == [ACL]
    assert on_loop == [False]


async def test_filters_pages_and_deletion(supers: Supers) -> None:
    users = [ACL | {"principal": f"User:user-{number}"} for number in range(4)]
    literal = ACL | {"name": "orders-5", "pattern": "LITERAL"}
    assert (await create(supers, *users, literal)).status == 200
    assert await listed(supers, "principal=User:user-2") == [users[2]]
    assert len(await listed(supers, "name=orders-5&pattern=MATCH&resource_type=TOPIC")) == 5
    assert await listed(supers, "name=orders-5&pattern=LITERAL") == [literal]
    assert await listed(supers, "operation=READ") == []
    found: list[Any] = []
    query = "limit=2&pattern=PREFIXED"
    while query:
        said = await supers.ask(f"{ACLS}?{query}")
        found += said.json["items"]
        query = said.json["next"] and f"limit=2&pattern=PREFIXED&cursor={said.json['next']}"
    assert found == users
    said = await supers.ask(ACLS, "DELETE")
    assert (said.status, "say which" in said.json["detail"]) == (400, True)
    gone = await supers.ask(f"{ACLS}?pattern=PREFIXED", "DELETE")
    assert (gone.status, gone.json["items"]) == (200, users)
    assert await listed(supers) == [literal]
    assert (await supers.ask(f"{ACLS}?pattern=PREFIXED", "DELETE")).json == {"items": []}
    assert (await supers.ask("acls/acme/other")).json == {"items": [], "next": None}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"principal": "erin"}, "items[1]: 'erin' is no principal: write User:NAME"),
        ({"name": ""}, "items[1]: Invalid empty resource name"),
        (
            {"resource_type": "CLUSTER"},
            "items[1]: The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (
            {"operation": "IDEMPOTENT_WRITE"},
            "items[1]: ResourceType TOPIC only supports operations [ALL, READ",
        ),
        ({"operation": "ANY"}, "items must be a list of ACLs"),
        ({"permission": "allow"}, "items must be a list of ACLs"),
        ({"more": 1}, "an ACL has a member that is not known"),
    ],
)
async def test_one_that_is_wrong_keeps_all_from_being_stored(
    supers: Supers, wrong: dict[str, Any], told: str
) -> None:
    said = await create(supers, ACL, ACL | wrong)
    assert said.status == 400
    assert told in said.json["detail"]
    assert await listed(supers) == []


@pytest.mark.parametrize("body", [{}, {"items": []}, {"items": [5]}, [], {"items": [ACL], "x": 1}])
async def test_a_wrong_body(supers: Supers, body: Any) -> None:
    assert (await supers.ask(ACLS, "POST", json=body)).status == 400


async def test_each_acl_has_its_line_in_the_audit(supers: Supers) -> None:
    other = ACL | {"operation": "READ"}
    with capture_logs() as logs:
        await create(supers, ACL, other)
        await create(supers, ACL)
        await create(supers, ACL | {"name": ""})
        await supers.ask(f"{ACLS}?operation=READ", "DELETE")
    lines = [each for each in logs if each["event"] == "audit"]
    assert [(each["action"], each["outcome"], each.get("target"), each.get("acl")) for each in lines] == [
        (
            "create_acl",
            "done",
            "TOPIC:PREFIXED:orders-",
            "allow User:erin from *: DESCRIBE on topic prefixed orders-",
        ),
        (
            "create_acl",
            "done",
            "TOPIC:PREFIXED:orders-",
            "allow User:erin from *: READ on topic prefixed orders-",
        ),
        ("create_acl", "unchanged", None, None),
        ("create_acl", "refused", None, None),
        (
            "delete_acl",
            "done",
            "TOPIC:PREFIXED:orders-",
            "allow User:erin from *: READ on topic prefixed orders-",
        ),
    ]
    assert {each["namespace"] for each in lines} == {"public/default"}
