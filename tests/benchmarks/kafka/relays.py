"""The admin gateway before a real cluster: ``python -m tests.benchmarks.kafka.relays --topics 10000 --groups 2000``.

For each of the requests that have pages: all pages of 2,000 units through the gateway, at the port of one of the two
nodes, beside what the node answers unpaged, in turns. Metadata of all topics and by 10,000 names is beside the node's.
Medians in milliseconds from the first byte sent to the last one received.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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
from tests.support.ports import free_ports
from tests.support.served import Served

__all__ = ["Question", "Relay", "measure", "questions"]

PAGE: Final = 2000
#: What is asked for: the most of the node's own time; and how many times faster what comes of the snapshot is.
MOST: Final = 1.3
FASTER: Final = 10.0


@dataclass(frozen=True, slots=True)
class Question:
    """A request; ``snapshot`` says that the gateway answers it from its own snapshot."""

    name: str
    api: Api
    version: int
    body: Fields
    snapshot: bool = False

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
    yield Question("Metadata", METADATA, 12, {"topics": None}, snapshot=True)
    yield Question("Metadata by name", METADATA, 12, {"topics": named}, snapshot=True)
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
    whole = question.frame({})
    frames = list(_pass(question, through))
    theirs: list[float] = []
    unpaged: list[float] = []
    paged: list[float] = []
    size = 0
    for _ in range(turns + 2):  # the first two are not counted
        seconds, message = direct.exchange(whole)
        size = len(message)
        theirs.append(seconds)
        unpaged.append(through.exchange(whole)[0])
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


def report(found: Mapping[str, Relay]) -> None:
    """Print the figures."""
    print(f"{'':28}{'node':>10}{'gateway':>10}{'all pages':>11}{'pages':>7}{'KB':>8}{'ratio':>8}{'asked':>8}")
    for name, row in found.items():
        is_own = name.startswith("Metadata")
        ratio = row.node / row.unpaged if is_own else row.paged / row.node
        asked = f">= {FASTER:g}" if is_own else f"<= {MOST:g}"
        print(
            f"{name:28}{row.node * 1000:10.2f}{row.unpaged * 1000:10.2f}{row.paged * 1000:11.2f}"
            f"{row.pages:7}{row.size / 1000:8.0f}{ratio:8.2f}{asked:>8}"
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
        low = min(free_ports(4))
        upstream = {"bootstrap_servers": [node], "ports": f"{low}-{low + 3}"}
        kafka = {"listen": "127.0.0.1:0", "upstream": upstream}
        settings = {"catalog": {"path": str(folder / "catalog.sqlite")}, "kafka": kafka}
        served = stack.enter_context(Served(folder, settings))
        report(measure(_address(node), _address(served.ready["kafka"]), contents, options.turns))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    main()
