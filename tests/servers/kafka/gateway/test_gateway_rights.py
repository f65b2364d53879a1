"""What a gateway asks of each API: what the table of rights says, with each single action, and with a denial."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from structlog.testing import capture_logs

from broker_core.servers.kafka.gateway import GATEWAY_HANDLERS
from broker_core.settings import AuthenticationSettings, AuthorizationRule, AuthorizationSettings
from broker_core.upstream.kafka import KafkaCluster
from broker_core.wire.kafka import DESCRIBE_TOPIC_PARTITIONS, Api, Fields, MalformedMessage
from tests.support.kafka_bodies import DENIED, bodies_about, codes_in
from tests.support.kafka_gateway import NAMESPACE, Cluster, gateway
from tests.support.kafka_serving import raw_client
from tests.support.ports import free_port
from tests.support.rights_table import asked_by, enough, rights_before_a_cluster

ASKED: Final = asked_by("Kafka, before a cluster")
APIS: Final[Mapping[str, Api]] = {row.api.name: row.api for row in GATEWAY_HANDLERS.values()}
#: What producers and consumers ask, which is refused to all.
REFUSED: Final = {"Produce", "Fetch", "InitProducerId", "JoinGroup", "ConsumerGroupHeartbeat"}
#: Deleting the topic comes last.
TRIED: Final = sorted(bodies_about("").keys() & APIS.keys() - REFUSED, key="DeleteTopics".__eq__)
#: Gives the answer to a request, or ``None`` if the connection was closed.
Ask: TypeAlias = "Callable[[str, Mapping[str, Any]], Awaitable[Fields | None]]"


@pytest.fixture
def relayed(monkeypatch: pytest.MonkeyPatch) -> dict[Api, Fields]:
    """What the cluster was asked since this was cleared, and its answers; it has some APIs not."""
    noted: dict[Api, Fields] = {}
    request = KafkaCluster.request

    async def noting(self: KafkaCluster, target: Any, api: Api, *rest: Any, **more: Any) -> Fields:
        noted[api] = {}
        noted[api] = await request(self, target, api, *rest, **more)
        return noted[api]

    monkeypatch.setattr(KafkaCluster, "request", noting)
    return noted


@asynccontextmanager
async def _asking(folder: Path, cluster: Cluster, *rules: dict[str, Any]) -> AsyncIterator[Ask]:
    """Ask a node's port of a gateway with these rules for everybody."""
    every = [AuthorizationRule(roles=("anyone",), namespaces=(NAMESPACE,), **rule) for rule in rules]
    port = free_port()
    tables = {
        "authentication": AuthenticationSettings(anonymous_role="anyone"),
        "authorization": AuthorizationSettings(mode="rules", rules=tuple(every)),
    }

    async def ask(name: str, body: Mapping[str, Any]) -> Fields | None:
        # From version 10 on OffsetCommit has ids of topics.
        version = 9 if name == "OffsetCommit" else max(APIS[name].versions)
        async with raw_client(("127.0.0.1", port)) as client:
            try:
                return await client.ask(APIS[name], version, body)
            except MalformedMessage:
                return None

    async with gateway(folder, cluster.address, tables=tables, ports=str(port)):
        yield ask


async def _let_in(ask: Ask, relayed: dict[Api, Fields], topic: str) -> dict[str, bool]:
    found = {}
    bodies = bodies_about(topic)
    for name in TRIED:
        relayed.clear()
        said = await ask(name, bodies[name])
        # Closed are connections of what the cluster has no answer to, and no others.
        assert said is not None or relayed[APIS[name]] == {}, name
        own = {code for answer in relayed.values() for code in codes_in(answer)}
        found[name] = not DENIED.intersection(codes_in(said)) - own
        assert found[name] or "admin" not in ASKED[name] or APIS[name] not in relayed, name
    return found


def test_the_page_has_the_table() -> None:
    table = "\n".join(rights_before_a_cluster())
    page = Path(__file__).parents[4] / "docs/how-to/kafka-gateway.md"
    assert table in page.read_text(encoding="utf-8"), f"{page.name} needs this table:\n\n{table}"


def test_every_api_is_in_the_table_and_is_tried() -> None:
    assert ASKED.keys() == APIS.keys()
    assert APIS.keys() - set(TRIED) == REFUSED | {"SaslHandshake", "SaslAuthenticate"}


@pytest.mark.parametrize("action", ["list", "lookup", "monitor", "admin", None])
async def test_each_api_is_allowed_by_the_actions_of_the_table(
    tmp_path: Path, cluster: Cluster, relayed: dict[Api, Fields], action: str | None
) -> None:
    rules = [{"actions": (action,)}] if action else []
    async with _asking(tmp_path, cluster, *rules) as ask:
        every = {"topics": [], "response_partition_limit": 10, "cursor": None}
        rows = await ask(DESCRIBE_TOPIC_PARTITIONS.name, every)
        # No answer at all: no topics would be read as an empty cluster.
        assert bool(rows and rows["topics"]) is (rows is not None) is (action == "list")
        expected = {name: all(action in enough(each) for each in ASKED[name]) for name in TRIED}
        assert await _let_in(ask, relayed, "mail") == expected


async def test_a_denial_of_some_topics_takes_the_right_to_them_and_to_the_whole(
    tmp_path: Path, cluster: Cluster, relayed: dict[Api, Fields]
) -> None:
    secret = {"effect": "deny", "actions": ("*",), "topics": ("secret*",)}
    async with _asking(tmp_path, cluster, {"actions": ("*",)}, secret) as ask:
        # Configs are of topics by their names.
        expected = {name: set(ASKED[name]) <= {"list"} and name != "DescribeConfigs" for name in TRIED}
        assert await _let_in(ask, relayed, "secret.keys") == expected
    assert "secret.keys" in {row.name for row in await cluster.list_topics()}


async def test_the_denials_of_a_request_are_one_line_of_the_log(tmp_path: Path, cluster: Cluster) -> None:
    names = [f"hidden-{number}" for number in range(1200)]
    async with _asking(tmp_path, cluster, {"actions": ("list",), "topics": ("orders",)}) as ask:
        with capture_logs() as logs:
            found = await ask("Metadata", {"topics": [{"name": name} for name in names]})
            assert found is not None
            assert [row["error_code"] for row in found["topics"]] == [29] * len(names)
        lines = [each for each in logs if each["event"] == "denied by the rules"]
        assert [each["denials"] for each in lines] == [len(names)]
