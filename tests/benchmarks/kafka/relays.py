"""The admin gateway before a real cluster: ``python -m tests.benchmarks.kafka.relays --topics 10000 --groups 2000``.

For each of the requests that have pages: all pages of 2,000 units through the gateway, at the port of one of the two
nodes, beside what the node answers unpaged, in turns. Metadata of all topics and by 10,000 names is beside the node's,
and so are names alone, which a node tells in Metadata. Medians in milliseconds from the first byte sent to the last one
received, of which nothing is decoded.

Then what a program sees that uses the admin client: each operation at the cluster itself, beside its pages at the
gateway, until the last row is there. Of nodes that are two, each is asked for its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from broker_core.client.kafka import AdminClient, ConfigResource, ConfigResourceType, TopicPartition
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TOPICS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_FETCH,
    Api,
    Fields,
    read_response,
    request_frame,
)
from tests.benchmarks.kafka.kafka_connection import KafkaConnection
from tests.benchmarks.processes import machine
from tests.interop.kafka_peer import Contents, KafkaCluster, fill
from tests.support.ports import host_and_port, ports_in_a_row
from tests.support.served import Served

__all__ = ["Question", "Relay", "Use", "Used", "measure", "questions", "used", "uses"]

PAGE: Final = 2000
#: What is asked for: the most of the node's own time; and how many times faster what comes of the snapshot is.
MOST: Final = 1.3
FASTER: Final = 10.0


@dataclass(frozen=True, slots=True)
class Question:
    """A request; ``names`` says that the gateway is asked for names alone."""

    name: str
    api: Api
    version: int
    body: Fields
    names: bool = False

    def frame_for_gateway(self) -> bytes:
        if self.names:
            return request_frame(LIST_TOPICS, 0, 7, "bench", {"list_internal": False})
        return self.frame({})

    def frame(self, more: Mapping[str, Any]) -> bytes:
        return request_frame(self.api, self.version, 7, "bench", {**self.body, **more})


@dataclass(frozen=True, slots=True)
class Relay:
    """Medians in seconds, and the pages and the bytes of the whole."""

    node: float
    unpaged: float
    paged: float
    pages: int
    size: int


def questions(contents: Contents, groups: Sequence[str], topics: Sequence[str]) -> Iterator[Question]:
    """The thirteen, about what one node has: these groups, and the leadership of these topics."""
    partitions = [{"partition_index": 0, "timestamp": -1}]
    named = [{"name": name} for name in contents.topics]
    all_acls = dict.fromkeys(
        ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), 1
    )
    resources = [
        {"resource_type": 2, "resource_name": name, "configuration_keys": ["retention.ms"]} for name in topics
    ]
    classic, new = ([name for name in groups if int(name[-1]) % 2 == odd] for odd in (0, 1))
    yield Question("Metadata", METADATA, 12, {"topics": None})
    yield Question("Metadata by name", METADATA, 12, {"topics": named})
    yield Question("Metadata, names alone", METADATA, 12, {"topics": None}, names=True)
    yield Question("ListGroups", LIST_GROUPS, 5, {})
    yield Question("DescribeGroups", DESCRIBE_GROUPS, 5, {"groups": classic})
    yield Question("ConsumerGroupDescribe", CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": new})
    asked = [{"group_id": name, "topics": None} for name in groups]
    yield Question("OffsetFetch", OFFSET_FETCH, 8, {"groups": asked})
    offsets = [{"name": name, "partitions": partitions} for name in topics]
    yield Question("ListOffsets", LIST_OFFSETS, 8, {"topics": offsets})
    yield Question("DescribeLogDirs", DESCRIBE_LOG_DIRS, 4, {"topics": None})
    yield Question("ListPartitionReassignments", LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None})
    producers = [{"name": name, "partition_indexes": [0]} for name in topics]
    yield Question("DescribeProducers", DESCRIBE_PRODUCERS, 0, {"topics": producers})
    yield Question("ListTransactions", LIST_TRANSACTIONS, 1, {})
    yield Question(
        "DescribeTransactions", DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": contents.transactions}
    )
    yield Question("DescribeAcls", DESCRIBE_ACLS, 3, all_acls)
    yield Question("DescribeConfigs", DESCRIBE_CONFIGS, 4, {"resources": resources})


def measure(
    node: tuple[str, int], gateway: tuple[str, int], contents: Contents, turns: int = 7
) -> dict[str, Relay]:
    """The figures by request: of a node, asked itself and at the port of a gateway that a client of it finds it at."""
    with KafkaConnection(node) as direct, KafkaConnection(gateway) as first:
        brokers = first.ask(DESCRIBE_CLUSTER, 1, {})["brokers"]
        number = min(row["broker_id"] for row in brokers)
        port = next(row["port"] for row in brokers if row["broker_id"] == number)
        keepers = first.ask(FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": contents.groups})
        groups = [row["key"] for row in keepers["coordinators"] if row["node_id"] == number]
        rows = first.ask(METADATA, 12, {"topics": None})["topics"]
        topics = [row["name"] for row in rows if row["partitions"][0]["leader_id"] == number]
        wanted = frozenset(contents.topics)
        topics = [name for name in topics if name in wanted]
        with KafkaConnection((gateway[0], port)) as through:
            return {
                question.name: _figures(question, direct, through, turns)
                for question in questions(contents, groups, topics)
            }


def _figures(question: Question, direct: KafkaConnection, through: KafkaConnection, turns: int) -> Relay:
    whole, of_gateway = question.frame({}), question.frame_for_gateway()
    frames = [of_gateway] if question.names else list(_pass(question, through))
    theirs: list[float] = []
    unpaged: list[float] = []
    paged: list[float] = []
    size = 0
    for _ in range(turns + 2):  # the first two are not counted
        seconds, message = direct.exchange(whole)
        size = len(message)
        theirs.append(seconds)
        unpaged.append(through.exchange(of_gateway)[0])
        paged.append(sum(through.exchange(frame)[0] for frame in frames))
    node, one, all_pages = (statistics.median(each[2:]) for each in (theirs, unpaged, paged))
    return Relay(node, one, all_pages, len(frames), size)


def _pass(question: Question, connection: KafkaConnection) -> Iterator[bytes]:
    """The requests for all pages; each is sent as it is given."""
    cursor = None
    while True:
        frame = question.frame({"response_pagination_limit": PAGE, "cursor": cursor})
        yield frame
        message = bytes(connection.exchange(frame)[1])
        cursor = read_response(question.api, question.version, message)[1]["next_cursor"]
        if cursor is None:
            return


@dataclass(frozen=True, slots=True)
class Use:
    """An operation of the admin client, and the pages of it."""

    name: str
    whole: Callable[[AdminClient], Awaitable[object]]
    pages: Callable[[AdminClient], AsyncIterator[object]]


@dataclass(frozen=True, slots=True)
class Used:
    """Medians in seconds: of an operation at the cluster itself, of it at the gateway, and of all pages there."""

    direct: float
    whole: float
    paged: float
    pages: int


def uses(contents: Contents) -> Iterator[Use]:
    """The operations, each about everything of its kind."""
    new, classic = contents.groups[::2], contents.groups[1::2]
    first = [TopicPartition(name, 0) for name in contents.topics]
    ends = dict.fromkeys(first, -1)
    groups = dict.fromkeys(contents.groups)
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in contents.topics]
    names = ["retention.ms"]
    yield Use("list_topics", lambda of: of.list_topics(), lambda of: of.list_topics_pages())
    yield Use("list_groups", lambda of: of.list_groups(), lambda of: of.list_groups_pages())
    yield Use(
        "describe_groups",
        lambda of: of.describe_groups(classic),
        lambda of: of.describe_groups_pages(classic),
    )
    yield Use(
        "describe_consumer_groups",
        lambda of: of.describe_consumer_groups(new),
        lambda of: of.describe_consumer_groups_pages(new),
    )
    yield Use(
        "list_group_offsets",
        lambda of: of.list_group_offsets(groups),
        lambda of: of.list_group_offsets_pages(groups),
    )
    yield Use("list_offsets", lambda of: of.list_offsets(ends), lambda of: of.list_offsets_pages(ends))
    yield Use("describe_log_dirs", lambda of: of.describe_log_dirs(), lambda of: of.describe_log_dirs_pages())
    yield Use(
        "list_partition_reassignments",
        lambda of: of.list_partition_reassignments(),
        lambda of: of.list_partition_reassignments_pages(),
    )
    yield Use(
        "describe_producers",
        lambda of: of.describe_producers(first),
        lambda of: of.describe_producers_pages(first),
    )
    yield Use("list_transactions", lambda of: of.list_transactions(), lambda of: of.list_transactions_pages())
    yield Use(
        "describe_transactions",
        lambda of: of.describe_transactions(contents.transactions),
        lambda of: of.describe_transactions_pages(contents.transactions),
    )
    yield Use("describe_acls", lambda of: of.describe_acls(), lambda of: of.describe_acls_pages())
    yield Use(
        "describe_configs",
        lambda of: of.describe_configs(resources, names=names),
        lambda of: of.describe_configs_pages(resources, names=names),
    )


async def used(node: str, gateway: str, contents: Contents, turns: int = 7) -> dict[str, Used]:
    """The figures by operation, of one client of the cluster itself and one of the gateway."""
    async with AdminClient(node) as direct, AdminClient(gateway) as through:
        return {use.name: await _used(use, direct, through, turns) for use in uses(contents)}


async def _used(use: Use, direct: AdminClient, through: AdminClient, turns: int) -> Used:
    seconds: list[tuple[float, float, float]] = []
    pages = 0
    for _ in range(turns + 2):  # the first two are not counted
        begun = time.perf_counter()
        await use.whole(direct)
        asked = time.perf_counter()
        await use.whole(through)
        whole = time.perf_counter()
        pages = len([True async for _ in use.pages(through)])
        seconds.append((asked - begun, whole - asked, time.perf_counter() - whole))
    direct_seconds, whole_seconds, paged = (
        statistics.median(each) for each in zip(*seconds[2:], strict=True)
    )
    return Used(direct_seconds, whole_seconds, paged, pages)


def report(found: Mapping[str, Relay]) -> None:
    """Print the figures of requests."""
    print(f"{'':28}{'node':>10}{'gateway':>10}{'all pages':>11}{'pages':>7}{'KB':>8}{'ratio':>8}{'asked':>8}")
    for name, row in found.items():
        is_own = name.startswith("Metadata")
        ratio = row.node / row.unpaged if is_own else row.paged / row.node
        asked = f">= {FASTER:g}" if is_own else f"<= {MOST:g}"
        print(
            f"{name:28}{row.node * 1000:10.2f}{row.unpaged * 1000:10.2f}{row.paged * 1000:11.2f}"
            f"{row.pages:7}{row.size / 1000:8.0f}{ratio:8.2f}{asked:>8}"
        )


def report_uses(found: Mapping[str, Used]) -> None:
    """Print the figures of operations."""
    print(f"{'admin client':32}{'cluster':>10}{'gateway':>10}{'all pages':>11}{'pages':>7}{'ratio':>8}")
    for name, use in found.items():
        print(
            f"{name:32}{use.direct * 1000:10.2f}{use.whole * 1000:10.2f}{use.paged * 1000:11.2f}"
            f"{use.pages:7}{use.paged / use.direct:8.2f}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.kafka.relays", description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument(
        "--node", help="HOST:PORT of a node of a cluster that is filled like that and runs already"
    )
    options = parser.parse_args(arguments)
    contents = Contents(options.topics, options.groups)
    print(machine())
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="broker-core-bench-")))
        node = options.node
        if node is None:
            cluster = stack.enter_context(KafkaCluster(folder, 2, "900m", options=()))
            stack.enter_context(fill(cluster, contents, cluster.addresses[0]))
            node = cluster.addresses[0]
        low, *_, high = ports_in_a_row(4)
        upstream = {"bootstrap_servers": [node], "ports": f"{low}-{high}"}
        kafka = {"listen": "127.0.0.1:0", "upstream": upstream}
        settings = {"catalog": {"path": str(folder / "catalog.sqlite")}, "kafka": kafka}
        served = stack.enter_context(Served(folder, settings))
        gateway = served.ready["kafka"]
        report(measure(host_and_port(node), host_and_port(gateway), contents, options.turns))
        report_uses(asyncio.run(used(node, gateway, contents, options.turns)))


if __name__ == "__main__":
    main()
