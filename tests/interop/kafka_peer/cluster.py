"""Clusters of several real brokers, and what is in them: groups with members and offsets, transactions, moves, ACLs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from broker_core.client.kafka import AdminClient, NewTopic, Operation, PatternType, Permission, ResourceType
from broker_core.wire.kafka import (
    ALTER_PARTITION_REASSIGNMENTS,
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_ACLS,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    JOIN_GROUP,
    METADATA,
    OFFSET_COMMIT,
    Api,
    Fields,
    Struct,
)
from broker_core.wire.kafka.fields import BYTES, INT16, INT32, STRING, Array, Field, Versions
from tests.interop.kafka_peer.broker import KafkaBroker
from tests.support.eventually import eventually
from tests.support.kafka_serving import RawKafkaClient, raw_client
from tests.support.narrowed import present
from tests.support.ports import free_ports, host_and_port
from tests.support.quick_java import QUICK_JAVA

__all__ = ["Contents", "KafkaCluster", "fill"]

#: No server of ours answers it.
_SYNC_GROUP: Final = Api(
    14,
    "SyncGroup",
    Versions(0, 5),
    4,
    Struct(
        Field("group_id", STRING),
        Field("generation_id", INT32),
        Field("member_id", STRING),
        Field("group_instance_id", STRING, "3+", "3+", None),
        Field("assignments", Array(Struct(Field("member_id", STRING), Field("assignment", BYTES)))),
    ),
    Struct(Field("throttle_time_ms", INT32, "1+"), Field("error_code", INT16), Field("assignment", BYTES)),
)
#: Milliseconds for which members and transactions stay though nobody hears of them.
_LONG: Final = 1_700_000
#: Seconds for which a new cluster is waited for.
_PATIENCE: Final = 240.0
#: Requests under way on one connection, and topics of one that makes them.
_AT_ONCE: Final = 100
_MADE_AT_ONCE: Final = 500
_MOVED_BYTES: Final = 500_000


#: A program that begins transactions, and sends what takes long to move; it keeps the transactions as long as it runs.
_PRODUCERS: Final = f"""
import json, signal, sys
from kafka import KafkaProducer
asked = json.loads(sys.argv[1])
kept = []
for name, topic in asked["transactions"].items():
    producer = KafkaProducer(
        bootstrap_servers=asked["servers"], transactional_id=name, transaction_timeout_ms={_LONG}
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"x").get(60)
    kept.append(producer)
plain = KafkaProducer(bootstrap_servers=asked["servers"])
for name in asked["moved"]:
    for _ in range(8):
        plain.send(name, b"x" * {_MOVED_BYTES}).get(60)
print("sent", flush=True)
signal.pause()
"""


class KafkaCluster:
    """So many brokers, of which the first is the controller, or with three and more all are. A context manager."""

    def __init__(
        self, folder: Path, nodes: int, heap: str = "384m", *, options: Sequence[str] = QUICK_JAVA
    ) -> None:
        self.id: Final = "MkU3OEVBNTcwNTJENDM2Qg"
        voters = nodes if nodes > 2 else 1
        controllers = dict(zip(range(1, voters + 1), free_ports(voters), strict=True))
        properties = {
            "super.users": "User:ANONYMOUS;User:gateway",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.max.timeout.ms": str(_LONG),
            "group.initial.rebalance.delay.ms": "0",
            "group.max.session.timeout.ms": str(_LONG),
            "group.consumer.session.timeout.ms": str(_LONG),
            "group.consumer.max.session.timeout.ms": str(_LONG),
            "max.request.partition.size.limit": "2000",
            "log.index.size.max.bytes": "65536",
            # A move copies what it likes once in a window.
            "replication.quota.window.size.seconds": "600",
        }
        self.brokers: Final = {
            number: KafkaBroker(
                folder / f"node-{number}",
                properties,
                number=number,
                cluster=self.id,
                controllers=controllers,
                heap=heap,
                options=options,
            )
            for number in range(1, nodes + 1)
        }

    @property
    def addresses(self) -> list[str]:
        """Of all nodes, without credentials."""
        return [broker.address for broker in self.brokers.values()]

    @property
    def sasl_addresses(self) -> list[str]:
        """Of all nodes, for the user ``alice``."""
        return [broker.sasl_address for broker in self.brokers.values()]

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.callback(self.__exit__, None, None, None)
            for broker in self.brokers.values():
                broker.start()
            for broker in self.brokers.values():
                broker.wait()
            stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Without their controller, brokers wait for long before they end.
        for broker in reversed(self.brokers.values()):
            broker.kill()


class Contents:
    """The names of what a cluster is filled with: topics of one partition, and groups with an offset in each of five.

    Of the groups, every second has a member of the classic protocol, the others of the new one.
    """

    def __init__(self, topics: int, groups: int, acls: int = 200) -> None:
        self.topics: Final = [f"topic-{number:06d}" for number in range(topics)]
        self.groups: Final = [f"group-{number:05d}" for number in range(groups)]
        self.acls: Final = [f"acl-{number:04d}" for number in range(acls)]
        self.transactions: Final = [f"transaction-{number}" for number in range(4)]
        self.moved: Final = self.topics[:2]

    def of_group(self, place: int) -> list[str]:
        """The topics in which a group has offsets."""
        return [self.topics[(place * 5 + number) % len(self.topics)] for number in range(5)]


@contextlib.contextmanager
def fill(cluster: KafkaCluster, contents: Contents, address: str) -> Iterator[None]:
    """Fill a cluster, its topics by an admin at ``address``; within it transactions stay open."""
    asyncio.run(_fill(cluster, contents, address))
    asked = {
        "servers": cluster.addresses,
        "transactions": dict(zip(contents.transactions, contents.topics, strict=False)),
        "moved": contents.moved,
    }
    command = [sys.executable, "-c", _PRODUCERS, json.dumps(asked)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as producers:
        try:
            assert present(producers.stdout).readline() == b"sent\n"
            asyncio.run(_move(cluster, contents))
            yield
        finally:
            producers.kill()


async def _fill(cluster: KafkaCluster, contents: Contents, address: str) -> None:
    async with raw_client(host_and_port(cluster.addresses[0])) as client:
        # It makes the topic of the offsets, which would be the last one of thousands.
        await _keepers(client, contents.groups)
    async with AdminClient(address, api_timeout=120) as admin:
        for low in range(0, len(contents.topics), _MADE_AT_ONCE):
            some = [NewTopic(name, 1) for name in contents.topics[low : low + _MADE_AT_ONCE]]
            (await admin.create_topics(some)).all()
    acls = [
        {
            "resource_type": ResourceType.TOPIC,
            "resource_name": name,
            "resource_pattern_type": PatternType.LITERAL,
            "principal": "User:alice",
            "host": "*",
            "operation": operation,
            "permission_type": Permission.ALLOW,
        }
        for name in [*contents.acls, *contents.topics[:10]]
        for operation in (Operation.DESCRIBE, Operation.READ)
    ]
    async with contextlib.AsyncExitStack() as stack:
        nodes = {
            number: await stack.enter_async_context(raw_client(host_and_port(broker.address)))
            for number, broker in cluster.brokers.items()
        }
        first = nodes[1]
        answer = await first.ask(CREATE_ACLS, 3, {"creations": acls})
        assert {row["error_code"] for row in answer["results"]} == {0}
        for client in nodes.values():
            await _shows(client, contents)
        keepers = await _keepers(first, contents.groups)
        for number, client in nodes.items():
            mine = [place for place, name in enumerate(contents.groups) if keepers[name] == number]
            await _groups(client, contents, mine)


async def _shows(client: RawKafkaClient, contents: Contents) -> None:
    """Wait until a node knows all topics, and leads those that are its own."""

    async def knows() -> bool:
        rows = (await client.ask(METADATA, 12, {"topics": None}))["topics"]
        return len(rows) > len(contents.topics)

    await eventually(knows, _PATIENCE)


async def _keepers(client: RawKafkaClient, groups: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}

    async def are_known() -> bool:
        answer = await client.ask(FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": list(groups)})
        found.update({row["key"]: row["node_id"] for row in answer["coordinators"] if not row["error_code"]})
        return len(found) == len(groups)

    await eventually(are_known, _PATIENCE)
    return found


async def _groups(client: RawKafkaClient, contents: Contents, places: Sequence[int]) -> None:
    """Offsets first: they are refused without the generation of a member."""
    commits = []
    for place in places:
        topics = [
            {
                "name": name,
                "partitions": [{"partition_index": 0, "committed_offset": place, "committed_metadata": ""}],
            }
            for name in contents.of_group(place)
        ]
        commits.append({"group_id": contents.groups[place], "topics": topics})

    async def committed() -> bool:
        answers = await _several(client, OFFSET_COMMIT, 9, commits)
        rows = [part for answer in answers for row in answer["topics"] for part in row["partitions"]]
        assert {row["error_code"] for row in rows} <= {0}
        return True

    await eventually(committed, _PATIENCE)
    classic = [contents.groups[place] for place in places if not place % 2]
    joins = [
        {
            "group_id": name,
            "session_timeout_ms": _LONG,
            "rebalance_timeout_ms": _LONG,
            "group_instance_id": f"{name}-member",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": _subscription(contents.topics[:3])}],
        }
        for name in classic
    ]
    joined = await _several(client, JOIN_GROUP, 6, joins)
    assert {answer["error_code"] for answer in joined} <= {0}
    syncs = [
        {
            "group_id": name,
            "generation_id": answer["generation_id"],
            "member_id": answer["member_id"],
            "group_instance_id": f"{name}-member",
            "assignments": [
                {"member_id": answer["member_id"], "assignment": _assignment(contents.topics[:3])}
            ],
        }
        for name, answer in zip(classic, joined, strict=True)
    ]
    assert {answer["error_code"] for answer in await _several(client, _SYNC_GROUP, 3, syncs)} <= {0}
    beats = [
        {
            "group_id": contents.groups[place],
            "member_id": str(uuid.UUID(int=place)),
            "member_epoch": 0,
            "rebalance_timeout_ms": _LONG,
            "subscribed_topic_names": contents.of_group(place),
            "topic_partitions": [],
        }
        for place in places
        if place % 2
    ]
    assert {row["error_code"] for row in await _several(client, CONSUMER_GROUP_HEARTBEAT, 1, beats)} <= {0}


async def _several(client: RawKafkaClient, api: Api, version: int, bodies: Sequence[Fields]) -> list[Fields]:
    """The answers to many requests, some of them under way at a time."""
    answers: list[Fields] = []
    for low in range(0, len(bodies), _AT_ONCE):
        some = bodies[low : low + _AT_ONCE]
        for body in some:
            client.send(api, version, body)
        answers += [await client.answer(api, version) for _ in some]
    return answers


async def _move(cluster: KafkaCluster, contents: Contents) -> None:
    """Moves under way, which last: a byte a second is copied."""
    throttle = {"leader.replication.throttled.rate": "1", "follower.replication.throttled.rate": "1"}
    of_topic = {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"}
    rows = [
        {"name": name, "partitions": [{"partition_index": 0, "replicas": list(cluster.brokers)}]}
        for name in contents.moved
    ]
    for number, broker in cluster.brokers.items():
        async with raw_client(host_and_port(broker.address)) as client:
            await _configured(client, 4, [str(number)], throttle)  # a node takes its own alone
            if number == 1:
                await _configured(client, 2, contents.moved, of_topic)
    async with raw_client(host_and_port(cluster.addresses[0])) as client:
        answer = await client.ask(ALTER_PARTITION_REASSIGNMENTS, 0, {"timeout_ms": 30_000, "topics": rows})
        assert not answer["error_code"], answer
        assert {part["error_code"] for row in answer["responses"] for part in row["partitions"]} == {0}


async def _configured(
    client: RawKafkaClient, kind: int, names: Sequence[str], values: Mapping[str, str]
) -> None:
    configs = [{"name": key, "config_operation": 0, "value": value} for key, value in values.items()]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs} for name in names]
    answer = await client.ask(INCREMENTAL_ALTER_CONFIGS, 1, {"resources": resources, "validate_only": False})
    assert {row["error_code"] for row in answer["responses"]} == {0}, answer


def _subscription(topics: Sequence[str]) -> bytes:
    return b"\0\1" + _names(topics) + b"\xff\xff\xff\xff" + b"\0\0\0\0"


def _assignment(topics: Sequence[str]) -> bytes:
    rows = b"".join(_text(name) + b"\0\0\0\1\0\0\0\0" for name in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + rows + b"\xff\xff\xff\xff"


def _names(topics: Sequence[str]) -> bytes:
    return len(topics).to_bytes(4, "big") + b"".join(map(_text, topics))


def _text(name: str) -> bytes:
    return len(name).to_bytes(2, "big") + name.encode()
