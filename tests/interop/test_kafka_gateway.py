"""The admin gateway before a real Kafka 4.3.1: what clients and tools find through it is what they find there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from broker_core.client.kafka import (
    AclBinding,
    AclFilter,
    AdminClient,
    KafkaException,
    NewTopic,
    OAuthBearer,
    Operation,
    PatternType,
    Permission,
    Plain,
    ResourceType,
    SaslAuthenticationException,
    TopicAuthorizationException,
    TopicPartition,
)
from broker_core.wire.kafka import (
    CREATE_ACLS,
    DELETE_GROUPS,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TOPIC_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    PRODUCE,
    Api,
    ErrorCode,
    Fields,
)
from tests.interop.kafka_peer import KafkaBroker, unsigned_token
from tests.interop.kafka_programs import kafka_tools
from tests.interop.maven import PeerUnavailable
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd
from tests.support.kafka_gateway import Secrets, address_of
from tests.support.kafka_gateway import gateway as masked_gateway
from tests.support.kafka_serving import raw_client
from tests.support.narrowed import present
from tests.support.ports import host_and_port, ports_in_a_row
from tests.support.served import Served

pytestmark = pytest.mark.interop

_TOPICS: Final = {"orders": 3, "payments": 2, "audit": 1}
_GROUPS: Final = [f"group-{number}" for number in range(5)]
_TRANSACTIONS: Final = [f"transaction-{number}" for number in range(4)]
#: Topics that are made for one test; a mask hides the first one.
_MASKED: Final = ("secret.keys", "open.door")
_TOOLS: Final = "org.apache.kafka.tools."


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A cluster with groups that have offsets, transactional ids and ACLs."""
    try:
        broker = KafkaBroker(
            tmp_path_factory.mktemp("kafka"),
            {
                "super.users": "User:ANONYMOUS;User:gateway",
                "offsets.topic.num.partitions": "2",
                "transaction.state.log.num.partitions": "2",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
            },
        )
    except PeerUnavailable as error:
        pytest.skip(str(error))
    with broker:
        yield broker


def _gateway(folder: Path, bootstrap: str, **more: Any) -> Served:
    first, _, last = ports_in_a_row(3)
    upstream = {"bootstrap_servers": [bootstrap], "ports": f"{first}-{last}", **more.pop("upstream", {})}
    tables = more.pop("tables", {})
    kafka = {"listen": "127.0.0.1:0", "upstream": upstream, **more}
    catalog = {"path": str(folder / "catalog.sqlite")}
    return Served(folder, {"catalog": catalog, "kafka": kafka, **tables})


@pytest.fixture(scope="module")
def gateway(broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway that asks with its own rights, which are all."""
    with _gateway(tmp_path_factory.mktemp("gateway"), broker.address) as served:
        yield served


@pytest.fixture(scope="module")
def filled(broker: KafkaBroker, gateway: Served) -> str:
    """The topics and the rest are made through the gateway. Gives the address of the listener's own port."""
    address: str = gateway.ready["kafka"]
    asyncio.run(_fill(broker, address))
    return address


async def _fill(broker: KafkaBroker, address: str) -> None:
    async with AdminClient(address) as admin:
        made = await admin.create_topics([NewTopic(name, count) for name, count in _TOPICS.items()])
        made.all()
        assert {row.name for row in await admin.list_topics()} == set(_TOPICS)
    acls = [
        {
            "resource_type": ResourceType.TOPIC,
            "resource_name": name,
            "resource_pattern_type": PatternType.LITERAL,
            "principal": "User:alice",
            "host": "*",
            "operation": Operation.DESCRIBE,
            "permission_type": Permission.ALLOW,
        }
        for name in ("orders", "audit")
    ]
    async with raw_client(host_and_port(address)) as client:
        answer = await client.ask(CREATE_ACLS, 3, {"creations": acls})
        assert [row["error_code"] for row in answer["results"]] == [0, 0]
        assert (await client.ask(CREATE_ACLS, 3, {"creations": []}))["results"] == []

        async def committed() -> bool:
            codes = set()
            for place, group in enumerate(_GROUPS):
                rows = [
                    {"partition_index": index, "committed_offset": place + index, "committed_metadata": ""}
                    for index in range(3)
                ]
                body = {"group_id": group, "topics": [{"name": "orders", "partitions": rows}]}
                answer = await client.ask(OFFSET_COMMIT, 9, body)
                codes |= {part["error_code"] for row in answer["topics"] for part in row["partitions"]}
            return codes == {0}

        await eventually(committed)
    async with raw_client(host_and_port(broker.address)) as direct:

        async def begun() -> bool:
            codes = set()
            # Who looks for coordinators makes the topic that they keep transactions in.
            await direct.ask(FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": _TRANSACTIONS})
            for name in _TRANSACTIONS:
                body = {"transactional_id": name, "transaction_timeout_ms": 60_000}
                codes.add((await direct.ask(INIT_PRODUCER_ID, 4, body))["error_code"])
            return codes == {0}

        await eventually(begun)


def _partitions(name: str) -> list[Fields]:
    return [{"partition_index": index, "timestamp": -1} for index in range(_TOPICS[name])]


_RESOURCES: Final = [
    {"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in _TOPICS
]
_ALL_ACLS: Final = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "operation": 1,
    "permission_type": 1,
}
_OF_NODE: Final[list[tuple[Api, int, Fields, str]]] = [
    (METADATA, 12, {"topics": None}, "topics"),
    (LIST_GROUPS, 5, {"states_filter": []}, "groups"),
    (DESCRIBE_GROUPS, 5, {"groups": [*_GROUPS, "nobody"]}, "groups"),
    (LIST_TRANSACTIONS, 1, {}, "transaction_states"),
    (
        DESCRIBE_TRANSACTIONS,
        0,
        {"transactional_ids": [*_TRANSACTIONS, "none"]},
        "transaction_states",
    ),
    (
        LIST_OFFSETS,
        8,
        {"topics": [{"name": name, "partitions": _partitions(name)} for name in _TOPICS]},
        "topics",
    ),
    (
        DESCRIBE_PRODUCERS,
        0,
        {"topics": [{"name": name, "partition_indexes": [0]} for name in _TOPICS]},
        "topics",
    ),
    (
        OFFSET_FETCH,
        8,
        {"groups": [{"group_id": name, "topics": None} for name in _GROUPS]},
        "groups",
    ),
    (DESCRIBE_LOG_DIRS, 4, {"topics": None}, "results"),
    (LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}, "topics"),
    (DESCRIBE_CONFIGS, 4, {"resources": _RESOURCES}, "results"),
    (DESCRIBE_ACLS, 3, _ALL_ACLS, "resources"),
]
_INNER: Final = ("topics", "partitions", "active_producers", "members", "acls", "configs")
_NOISE: Final = frozenset({"topic_id", "usable_bytes", "total_bytes"})


def _leaves(rows: list[Fields], before: str = "") -> Iterator[str]:
    """Each element of the innermost arrays with all that it is in, as text: those of pages are those of the whole."""
    for row in rows:
        plain = {
            name: value
            for name, value in row.items()
            if name not in _NOISE and not (name in _INNER and value)
        }
        path = before + json.dumps(plain, default=str, sort_keys=True)
        inner = [row[name] for name in _INNER if row.get(name)]
        for elements in inner:
            yield from _leaves(elements, path)
        if not inner:
            yield path


async def _node(address: str) -> str:
    """The address of the node that a gateway names."""
    async with raw_client(host_and_port(address)) as client:
        (row,) = (await client.ask(DESCRIBE_CLUSTER, 1, {}))["brokers"]
    return f"{row['host']}:{row['port']}"


@pytest.mark.parametrize("case", _OF_NODE, ids=lambda case: case[0].name)
async def test_joined_pages_are_what_the_node_answers_unpaged(
    broker: KafkaBroker, filled: str, case: tuple[Api, int, Fields, str]
) -> None:
    api, version, body, array = case
    async with raw_client(host_and_port(broker.address)) as client:
        whole = sorted(_leaves((await client.ask(api, version, body))[array]))
    async with raw_client(host_and_port(await _node(filled))) as client:
        assert sorted(_leaves((await client.ask(api, version, body))[array])) == whole
        for limit in (1, 7, 2000):
            rows: list[Fields] = []
            cursor: Fields | None = None
            for _ in range(200):
                paged = {**body, "response_pagination_limit": limit, "cursor": cursor}
                page = await client.ask(api, version, paged)
                rows += page[array]
                cursor = page["next_cursor"]
                if cursor is None:
                    break
            else:
                pytest.fail("pages do not end")
            assert sorted(_leaves(rows)) == whole


async def test_described_pages_of_all_topics_are_the_nodes_but_for_eligible_replicas(
    broker: KafkaBroker, filled: str
) -> None:
    async def pages(address: str, limit: int) -> list[Fields]:
        rows: list[Fields] = []
        cursor: Fields | None = None
        async with raw_client(host_and_port(address)) as client:
            while not rows or cursor is not None:
                asked = {"topics": [], "response_partition_limit": limit, "cursor": cursor}
                page = await client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, asked)
                rows, cursor = rows + page["topics"], page["next_cursor"]
        return rows

    direct = await pages(broker.address, 2000)
    for row in direct:
        for part in row["partitions"]:
            part |= {"eligible_leader_replicas": None, "last_known_elr": None}
    for limit in (1, 7, 2000):
        found = await pages(filled, limit)
        assert sorted(_leaves(found)) == sorted(_leaves(direct))
        assert {row["topic_id"] for row in found} == {row["topic_id"] for row in direct}


async def test_the_own_port_of_the_listener_is_no_nodes(broker: KafkaBroker, filled: str) -> None:
    async with (
        raw_client(host_and_port(filled)) as client,
        raw_client(host_and_port(broker.address)) as direct,
    ):
        for api, version, array in ((LIST_GROUPS, 5, "groups"), (LIST_TRANSACTIONS, 1, "transaction_states")):
            ours, theirs = await client.ask(api, version, {}), await direct.ask(api, version, {})
            assert sorted(_leaves(ours[array])) == sorted(_leaves(theirs[array]))
        assert (await client.ask(DESCRIBE_LOG_DIRS, 4, {"topics": None}))["error_code"] == 42
        found = await client.ask(FIND_COORDINATOR, 4, {"coordinator_keys": ["group-0"]})
        (row,) = found["coordinators"]
        assert f"{row['host']}:{row['port']}" == await _node(filled)
        nodes = (await client.ask(METADATA, 12, {"topics": None}))["brokers"]
        assert [f"{row['host']}:{row['port']}" for row in nodes] == [await _node(filled)]
        told = json.dumps([found, nodes], default=str)
        assert broker.address not in told


async def test_groups_and_offsets_change_through_the_gateway(filled: str) -> None:
    async with raw_client(host_and_port(filled)) as client:
        rows = [{"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}]
        body = {"group_id": "short", "topics": [{"name": "orders", "partitions": rows}]}
        assert (await client.ask(OFFSET_COMMIT, 9, body))["topics"][0]["partitions"][0]["error_code"] == 0
        body = {"group_id": "short", "topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}]}
        assert (await client.ask(OFFSET_DELETE, 0, body))["topics"][0]["partitions"][0]["error_code"] == 0
        gone = await client.ask(DELETE_GROUPS, 2, {"groups_names": ["short", "never"]})
        codes = {row["group_id"]: row["error_code"] for row in gone["results"]}
        assert codes["never"] == 69
        assert codes["short"] in (0, 69)  # without offsets a group may be gone by itself


async def test_messages_are_refused_with_the_name_of_the_cluster(filled: str) -> None:
    async with raw_client(host_and_port(filled)) as client:
        cluster = (await client.ask(DESCRIBE_CLUSTER, 1, {}))["cluster_id"]
        partition = {"index": 0, "records": None}
        body = {"acks": 1, "topic_data": [{"name": "orders", "partition_data": [partition]}]}
        (row,) = (await client.ask(PRODUCE, 9, body))["responses"][0]["partition_responses"]
        assert row["error_code"] == 44
        assert cluster in row["error_message"]
        joined = await client.ask(
            JOIN_GROUP, 9, {"group_id": "g", "protocol_type": "consumer", "protocols": []}
        )
        assert joined["error_code"] == 30


def test_tools_print_what_they_print_at_the_cluster(broker: KafkaBroker, filled: str) -> None:
    commands = [
        (_TOOLS + "TopicCommand", "--describe"),
        (_TOOLS + "consumer.group.ConsumerGroupCommand", "--describe", "--all-groups"),
        (_TOOLS + "LogDirsCommand", "--describe"),
        (_TOOLS + "TransactionsCommand", "list"),
        (_TOOLS + "AclCommand", "--list"),
        (_TOOLS + "reassign.ReassignPartitionsCommand", "--list"),
        ("kafka.admin.ConfigCommand", "--describe", "--entity-type", "topics"),
    ]
    with kafka_tools() as run:
        for name, *arguments in commands:
            direct, through = (
                sorted(run(name, "--bootstrap-server", address, *arguments))
                for address in (broker.address, filled)
            )
            assert through == direct, name
            assert direct or "Group" in name


@pytest.fixture(scope="module")
def forwarding(broker: KafkaBroker, filled: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway that asks as its clients."""
    folder = tmp_path_factory.mktemp("forwarding")
    (folder / "token").write_text(unsigned_token("gateway"))
    own = {"mechanism": "OAUTHBEARER", "token": f"file:{folder / 'token'}"}
    served = _gateway(
        folder,
        broker.sasl_address,
        upstream={"forward": "client", "sasl": own},
        sasl={"mechanisms": ["PLAIN", "OAUTHBEARER"]},
    )
    with served:
        yield served.ready["kafka"]


async def test_clients_have_their_own_rights_at_the_cluster(broker: KafkaBroker, forwarding: str) -> None:
    async with AdminClient(forwarding, sasl=Plain("alice", broker.password)) as client:
        assert {row.name for row in await client.list_topics()} == {"orders", "audit"}
        made = await client.create_topics([NewTopic("more", 1)])
        with pytest.raises(TopicAuthorizationException):
            made.all()
    async with AdminClient(forwarding, sasl=OAuthBearer(lambda: unsigned_token("gateway"))) as client:
        assert {row.name for row in await client.list_topics()} == set(_TOPICS)


async def test_credentials_that_the_cluster_refuses_are_refused(forwarding: str) -> None:
    for sasl in (Plain("alice", "wrong"), Plain("nobody", "x"), OAuthBearer(lambda: "no.token.")):
        async with AdminClient(forwarding, sasl=sasl, api_timeout=10) as client:
            with pytest.raises((SaslAuthenticationException, KafkaException)):
                await client.list_topics()


async def test_what_rules_hide_is_in_no_answer(broker: KafkaBroker, filled: str, tmp_path: Path) -> None:
    rule = {"roles": ["ann"], "actions": ["list"], "namespaces": ["public/default"], "topics": ["audit"]}
    tables = {
        "authentication": {
            "methods": ["basic"],
            "basic": {"file": str(write_htpasswd(tmp_path / "htpasswd", ann="pencil"))},
        },
        "authorization": {"rules": [rule]},
    }
    orders, audit = TopicPartition("orders", 0), TopicPartition("audit", 0)
    served = _gateway(tmp_path, broker.address, sasl={"mechanisms": ["PLAIN"]}, tables=tables)
    with served:
        async with AdminClient(served.ready["kafka"], sasl=Plain("ann", "pencil")) as client:
            assert [row.name for row in await client.list_topics()] == ["audit"]
            assert (await client.list_group_offsets({"group-0": None}))["group-0"] == ()
            offsets = await client.list_offsets({orders: -1, audit: -1})
            assert (offsets[audit].offset, set(offsets.errors)) == (0, {orders})
            producers = await client.describe_producers([orders, audit])
            assert (producers[audit], set(producers.errors)) == ((), {orders})
            logs = await client.describe_log_dirs([1])
            assert {row.partition.topic for row in logs if row.partition is not None} == {"audit"}
            assert set((await client.delete_topics(["orders", "audit"])).errors) == {"orders", "audit"}
            with pytest.raises(KafkaException):
                await client.describe_acls(AclFilter())
            for api, request in (
                (DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": None}),
                (DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False}),
            ):
                node = await present(client._cluster).any_node()
                said = await node.ask(api, request)
                assert said["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                assert not said.get("results")
                assert not said.get("entries")
    async with AdminClient(broker.address) as client:
        assert {row.name for row in await client.list_topics()} == set(_TOPICS)


async def test_acls_of_a_topic_that_a_mask_hides_are_not_deleted(
    broker: KafkaBroker, filled: str, tmp_path: Path
) -> None:
    async with AdminClient(broker.address) as direct:
        (await direct.create_topics([NewTopic("secret.keys"), NewTopic("open.door")])).all()
        ids = {name: row.topic_id for name, row in (await direct.describe_topics(_MASKED)).all().items()}
        bindings = [
            AclBinding(kind, name, pattern, "User:masked", "*", Operation.READ, Permission.ALLOW)
            for kind in (ResourceType.TOPIC, ResourceType.GROUP)
            for name in _MASKED
            for pattern in (PatternType.LITERAL, PatternType.PREFIXED)
        ]
        (await direct.create_acls(bindings)).all()
        hidden = next(row for row in bindings if row[:3] == (ResourceType.TOPIC, "secret.keys", 3))
        mine = AclFilter(principal="User:masked")
        await eventually(partial(_has, direct, mine, set(bindings)))
        masked = masked_gateway(tmp_path, broker.address, {"secrets": Secrets()})
        async with masked as front, AdminClient(address_of(front)) as client:
            shown = set(bindings) - {hidden}
            assert set(await client.describe_acls(mine)) == shown
            assert set((await client.delete_acls([mine]))[mine].keys()) == shown
            await eventually(partial(_has, direct, mine, {hidden}))
            url = "http://{}:{}/v1/topics/by-id".format(*(front.http_address or ()))
            async with aiohttp.ClientSession() as http:
                for name, status in (("secret.keys", 404), ("open.door", 204), ("open.door", 404)):
                    async with http.delete(f"{url}/{ids[name]}") as answer:
                        assert answer.status == status
        (await direct.delete_acls([mine])).all()
        (await direct.delete_topics(["secret.keys"])).all()


async def _has(client: AdminClient, wanted: AclFilter, bindings: set[AclBinding]) -> bool:
    return set(await client.describe_acls(wanted)) == bindings
