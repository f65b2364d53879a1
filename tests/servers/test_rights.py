"""The table of rights: it is complete, it is what the page has, and each operation of each transport asks just that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from broker_core.access.asker import ACTIONS
from broker_core.access.authorization import RULES_OF
from broker_core.errors import ListingFailed, ServerError
from broker_core.names import NamespaceName, TopicName
from broker_core.servers.http.api.api import HttpApi
from broker_core.servers.http.api.operation import HttpOperation
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.wire.pulsar import LOOKUP_COMMANDS, BaseCommand, CommandWatchTopicList, commands
from tests.support.api_serving import ApiServed, Said, api_served
from tests.support.kafka_bodies import DENIED, bodies_about, codes_in
from tests.support.kafka_serving import raw_client
from tests.support.raw_client import RawClient
from tests.support.rights_table import RIGHTS, asked_by, enough, rights_table

PAGE: Final = Path(__file__).parents[2] / "docs/how-to/secure.md"
RULES: Final = ("list", "lookup", "monitor", "admin")
BASE: Final = "/v1/namespaces/public/default"
#: APIs of producers and consumers, which need messages.
_REFUSED_TO_ALL: Final = frozenset({"Produce", "Fetch", "FindCoordinator", "InitProducerId"})
TOPIC: Final = "persistent://public/default/bills"
ACCESS: Final = "/v1/access/kafka"
#: What an operation is asked with each time: its name, and whether it was let in.
Asks = Mapping[str, Callable[[], Awaitable[bool]]]


def test_the_page_has_the_table() -> None:
    table = "\n".join(rights_table())
    assert table in PAGE.read_text(encoding="utf-8"), f"docs/how-to/secure.md needs this table:\n\n{table}"


def test_every_action_of_gates_has_actions_of_the_rules() -> None:
    assert RULES_OF.keys() == {*ACTIONS, "monitor"}
    assert {rule for rules in RULES_OF.values() for rule in rules} == set(RULES)


def test_every_command_and_api_is_in_the_table() -> None:
    assert asked_by("Kafka").keys() == {row.api.name for row in HANDLERS.values()}
    pulsar = asked_by("Pulsar")
    for name, kind in BaseCommand.Type.items():
        if kind in LOOKUP_COMMANDS:
            assert pulsar[name] == (LOOKUP_COMMANDS[kind].action,)


async def test_every_operation_of_http_is_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared: list[HttpOperation] = []
    routes = HttpApi.routes

    def noted(api: HttpApi) -> Any:
        declared.extend(api.operations)
        return routes(api)

    monkeypatch.setattr(HttpApi, "routes", noted)
    async with api_served(tmp_path):
        pass
    asked = asked_by("HTTP")
    names = {_name(operation) for operation in declared}
    assert names == {name for name in asked if not name.startswith(("GET /-", "GET /q", "GET /p", "GET /m"))}
    for operation in declared:  # of the others the handler asks
        assert operation.needs.action in (None, *asked[_name(operation)][:1])


@pytest.mark.parametrize("action", [*RULES, None])
async def test_each_operation_is_allowed_by_the_actions_of_the_table(
    tmp_path: Path, action: str | None
) -> None:
    rules = [{"roles": ["anyone"], "namespaces": ["*"], "actions": [action]}] if action else []
    async with api_served(
        tmp_path,
        authentication={"anonymous_role": "anyone"},
        authorization={"mode": "rules", "rules": rules},
        kafka={"listen": "127.0.0.1:0", "super_users": ["User:anyone"]},
        http={"protect": True, "questions": True},
    ) as served:
        for transport, asks in (
            ("HTTP", _over_http(served)),
            ("Kafka", _over_kafka(served)),
            ("Pulsar", _over_pulsar(served)),
        ):
            told = {name: await ask() for name, ask in asks.items()}
            asked = asked_by(transport)
            expected = {
                name: name not in _supers() and all(action in enough(each) for each in asked[name])
                for name in told
            }
            assert told == expected, transport
            assert asked.keys() - told.keys() <= _REFUSED_TO_ALL | {"SaslHandshake", "SaslAuthenticate"}


def _supers() -> set[str]:
    """The operations that rules allow to nobody."""
    return {name for right in RIGHTS if right.is_super for name in right.operations}


def _name(operation: HttpOperation) -> str:
    if operation.path.startswith("/v1"):
        return operation.operation_id
    path = operation.path
    for domain in ("non-persistent", "persistent"):
        path = path.replace(f"/{domain}/", "/{domain}/")
    return f"{operation.method} {path}"


def _over_http(served: ApiServed) -> Asks:
    def ask(
        path: str, method: str = "GET", *, is_seen: Callable[[Said], Any] = lambda _: True, **options: Any
    ) -> Callable[[], Awaitable[bool]]:
        async def asked() -> bool:
            said = await served.ask(path, method, **options)
            assert said.status not in {405, 500}, said
            return said.status != 403 and bool(is_seen(said))

        return asked

    async def topic_id() -> str:
        assert served.broker.catalog is not None
        record = served.broker.catalog.topic(TopicName.parse(TOPIC))
        assert record is not None
        return str(record.topic_id)

    def by_id(method: str) -> Callable[[], Awaitable[bool]]:
        async def asked() -> bool:
            path = f"/v1/topics/by-id/{await topic_id()}"
            return (await served.ask(path, method, headers={"If-Match": '"no"'})).status not in {403, 404}

        return asked

    def items(said: Said) -> Any:
        return said.json["items"]

    async def held_listings() -> bool:
        guard = served.broker.pipeline.guard
        guard.check(NamespaceName("public", "default"), "a question", 100)
        with pytest.raises(ListingFailed, match="holds this listing"):
            guard.check(NamespaceName("public", "default"), "a question", 10)
        return bool(items(await served.ask("/v1/held-listings")))

    admin = "/admin/v2/persistent/public/default"
    found = {
        "openapi": ask("/v1/openapi.json"),
        "listScreens": ask("/v1/screens"),
        "showAsker": ask("/v1/me"),
        "listHeldListings": held_listings,
        "listClients": ask("/v1/server/clients"),
        "showServerPlugins": ask("/v1/server/plugins"),
        "showServerMetrics": ask("/v1/server/metrics"),
        "showServerPermits": ask("/v1/server/permits"),
        "showServerCaches": ask("/v1/server/caches"),
        "showServerCheck": ask("/v1/server/check", is_seen=lambda said: said.status != 403),
        "showServerHistory": ask("/v1/server/history"),
        "showServerWatchers": ask("/v1/server/watchers"),
        "showServerQuestions": ask("/v1/server/questions"),
        "disconnectClients": ask("/v1/server/clients/disconnect?role=nobody", "POST"),
        "listTopics": ask(f"{BASE}/topics"),
        "showNamespace": ask(BASE),
        "listNamespaces": ask("/v1/namespaces", is_seen=items),
        "showTopic": ask(f"{BASE}/topics/bills"),
        "showTopicById": by_id("GET"),
        "listChanges": ask(f"{BASE}/changes"),
        "putTopic": ask(f"{BASE}/topics/bills", "PUT", json={}, headers={"If-None-Match": "*"}),
        "patchTopic": ask(
            f"{BASE}/topics/none",
            "PATCH",
            data="{}",
            headers={"Content-Type": "application/merge-patch+json"},
        ),
        "deleteTopic": ask(f"{BASE}/topics/none", "DELETE"),
        "deleteTopicById": by_id("DELETE"),
        "importTopics": ask(
            f"{BASE}/topics:import", "POST", data="", headers={"Content-Type": "application/x-ndjson"}
        ),
        "explainListing": ask(
            f"{BASE}/explain", "POST", json={}, is_seen=lambda said: "error" not in said.json
        ),
        "whyListed": ask(f"{BASE}/topics/bills:why", "POST", json={}),
        "showTopicHistory": ask(f"{BASE}/topics/bills/history"),
        "showTopicConfigs": ask(f"{BASE}/topics/bills/configs"),
        "listProperties": ask(f"{BASE}/properties"),
        "listPropertyValues": ask(f"{BASE}/properties/region"),
        "acceptHeldListings": ask(f"{BASE}/held-listings/accept", "POST"),
        "listKafkaUsers": ask(f"{ACCESS}/users"),
        "showKafkaUser": ask(f"{ACCESS}/users/somebody"),
        "putKafkaUser": ask(f"{ACCESS}/users/somebody", "PUT", json={}),
        "deleteKafkaUser": ask(f"{ACCESS}/users/somebody", "DELETE"),
        "listKafkaAcls": ask(f"{ACCESS}/acls/public/default"),
        "createKafkaAcls": ask(f"{ACCESS}/acls/public/default", "POST", json={}),
        "deleteKafkaAcls": ask(f"{ACCESS}/acls/public/default", "DELETE"),
        "GET /admin/v2/namespaces/{tenant}/{namespace}/topics": ask(
            "/admin/v2/namespaces/public/default/topics"
        ),
        "GET /admin/v2/{domain}/{tenant}/{namespace}": ask(admin),
        "GET /admin/v2/{domain}/{tenant}/{namespace}/partitioned": ask(f"{admin}/partitioned"),
        "GET /admin/v2/tenants": ask("/admin/v2/tenants", is_seen=lambda said: said.json),
        "GET /admin/v2/namespaces/{tenant}": ask(
            "/admin/v2/namespaces/public", is_seen=lambda said: said.status == 200
        ),
        "GET /admin/v2/namespaces/{tenant}/{namespace}": ask("/admin/v2/namespaces/public/default"),
        "GET /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}": ask(
            "/lookup/v2/topic/persistent/public/default/bills"
        ),
    }
    for name in asked_by("HTTP"):
        if name in found or " " not in name:
            continue
        method, path = name.split()
        options: dict[str, Any] = {"json": {}} if method in {"PUT", "POST"} else {}
        filled = path.format(
            domain="persistent", tenant="public", namespace="default", topic="none", version="1"
        )
        found[name] = ask(filled, method, **options)
    return found


def _over_kafka(served: ApiServed) -> Asks:
    bodies = bodies_about("bills")
    apis = {row.api.name: row.api for row in HANDLERS.values()}

    def ask(name: str) -> Callable[[], Awaitable[bool]]:
        async def asked() -> bool:
            assert served.broker.kafka_address is not None
            async with raw_client(served.broker.kafka_address) as client:
                said = await client.ask(apis[name], max(apis[name].versions), bodies[name])
            return DENIED.isdisjoint(codes_in(said))

        return asked

    return {name: ask(name) for name in apis.keys() & bodies.keys() - _REFUSED_TO_ALL}


def _over_pulsar(served: ApiServed) -> Asks:
    def ask(command: BaseCommand) -> Callable[[], Awaitable[bool]]:
        async def asked() -> bool:
            client = await RawClient.open(served.broker.pulsar_address)
            await client.send(commands.encode(command))
            answer = await client._after_pings()
            client.close()
            return ServerError.AuthorizationError not in {
                code
                for field, body in answer.ListFields()
                if field.message_type is not None
                for inner, code in body.ListFields()
                if inner.name in {"error", "error_code"}
            }

        return asked

    listing = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE)
    listing.getTopicsOfNamespace.namespace, listing.getTopicsOfNamespace.request_id = "public/default", 1
    watch = BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST)
    watch.watchTopicList.CopyFrom(
        CommandWatchTopicList(
            request_id=1, watcher_id=1, namespace="public/default", topics_pattern="public/default/.*"
        )
    )
    ping = BaseCommand(type=BaseCommand.PING)
    ping.ping.SetInParent()
    found = {
        "CONNECT": ask(ping),
        "PING": ask(ping),
        "GET_TOPICS_OF_NAMESPACE": ask(listing),
        "WATCH_TOPIC_LIST": ask(watch),
    }
    for name, kind in BaseCommand.Type.items():
        if kind not in LOOKUP_COMMANDS:
            continue
        command = BaseCommand(type=kind)
        body = LOOKUP_COMMANDS[kind].request_body(command)
        body.topic, body.request_id = TOPIC, 1
        if name == "GET_OR_CREATE_SCHEMA":
            body.schema = b""
        found[name] = ask(command)
    return found
