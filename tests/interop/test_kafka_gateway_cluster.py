"""The admin gateway before several real brokers with SASL and ACLs: groups, transactions, moves, and nodes that go.

``KAFKA_CLUSTER="3 10000 2000"`` has so many nodes, topics and groups; with three the controller moves, and is killed.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from broker_core.client import ClientError
from broker_core.client.kafka import AdminClient, NewTopic, NotControllerException, TimeoutException
from broker_core.wire.kafka import (
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    LIST_GROUPS,
    METADATA,
    Fields,
)
from tests.benchmarks.kafka.relays import Question, questions
from tests.interop.kafka_peer import Contents, KafkaBroker, KafkaCluster, fill, unsigned_token
from tests.interop.kafka_programs import kafka_tools
from tests.interop.maven import PeerUnavailable
from tests.support.eventually import eventually
from tests.support.kafka_page_units import in_order, units_of
from tests.support.kafka_serving import RawKafkaClient, raw_client
from tests.support.ports import host_and_port, ports_in_a_row
from tests.support.served import Served

pytestmark = pytest.mark.interop

NODES, TOPICS, GROUPS = map(int, os.environ.get("KAFKA_CLUSTER", "2 300 60").split())
#: The heap of a node with many topics.
_HEAP: Final = "384m" if TOPICS <= 1000 else "900m"
_TOOLS: Final = "org.apache.kafka.tools."
#: Seconds in which a gateway that is asked again and again while nodes go must have answered all.
_ANSWERED: Final = 240.0


@dataclass(frozen=True)
class Place:
    """A filled cluster, and its gateway, which asks as a user of all rights."""

    cluster: KafkaCluster
    contents: Contents
    gateway: Served

    @property
    def address(self) -> tuple[str, int]:
        return host_and_port(self.gateway.ready["kafka"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("cluster")
    contents = Contents(TOPICS, GROUPS, acls=20 if TOPICS <= 1000 else 200)
    try:
        cluster = KafkaCluster(folder, NODES, _HEAP)
    except PeerUnavailable as error:
        pytest.skip(str(error))
    first, *_, last = ports_in_a_row(NODES + 1)
    own = {"mechanism": "OAUTHBEARER", "token": f"file:{folder / 'token'}"}
    (folder / "token").write_text(unsigned_token("gateway"))
    upstream = {
        "bootstrap_servers": cluster.sasl_addresses,
        "ports": f"{first}-{last}",
        "sasl": own,
    }
    kafka = {"listen": "127.0.0.1:0", "upstream": upstream}
    served = Served(folder / "gateway", {"catalog": {"path": str(folder / "catalog.sqlite")}, "kafka": kafka})
    with cluster, served, fill(cluster, contents, served.ready["kafka"]):
        yield Place(cluster, contents, served)


async def _pages(client: RawKafkaClient, question: Question, limit: int) -> list[Fields]:
    """All pages of a request."""
    pages: list[Fields] = []
    cursor: Fields | None = None
    for _ in range(20_000):
        paged = {**question.body, "response_pagination_limit": limit, "cursor": cursor}
        pages.append(await client.ask(question.api, question.version, paged))
        cursor = pages[-1]["next_cursor"]
        if cursor is None:
            return pages
    pytest.fail("pages do not end")


def _units(question: Question, answers: Sequence[Fields]) -> list[Any]:
    for answer in answers:
        for row in answer.get("results", ()):
            row.pop("usable_bytes", None)  # other programs write, too
        for row in answer.get("topics", ()):
            row.pop("topic_authorized_operations", None)
    units = [unit for answer in answers for unit in units_of(question.api, question.body, answer, {})]
    return in_order(units)


async def _asked_of(place: Place, direct: RawKafkaClient, number: int) -> list[Question]:
    """The thirteen requests, about what a node has."""
    body = {"key_type": 0, "coordinator_keys": place.contents.groups}
    keepers = (await direct.ask(FIND_COORDINATOR, 4, body))["coordinators"]
    groups = [row["key"] for row in keepers if row["node_id"] == number]
    rows = (await direct.ask(METADATA, 12, {"topics": None}))["topics"]
    known = frozenset(place.contents.topics)
    topics = [row["name"] for row in rows if row["partitions"][0]["leader_id"] == number]
    return list(questions(place.contents, groups, [name for name in topics if name in known]))


async def test_joined_pages_of_each_node_are_what_it_answers_unpaged(place: Place) -> None:
    empty = set()
    async with raw_client(place.address) as client:
        nodes = (await client.ask(DESCRIBE_CLUSTER, 1, {}))["brokers"]
    assert {row["broker_id"] for row in nodes} == place.cluster.brokers.keys()
    for row in nodes:
        direct_address = host_and_port(place.cluster.brokers[row["broker_id"]].address)
        async with raw_client(direct_address) as direct, raw_client((row["host"], row["port"])) as through:
            for question in await _asked_of(place, direct, row["broker_id"]):
                answer = await direct.ask(question.api, question.version, question.body)
                whole = _units(question, [answer])
                unpaged = await through.ask(question.api, question.version, question.body)
                assert _units(question, [unpaged]) == whole, (question.name, "unpaged")
                for limit in (max(7, len(whole) // 23), 2000, 10**9):
                    pages = await _pages(through, question, limit)
                    assert _units(question, pages) == whole, (question.name, limit)
                    full = -(-len({unit[0] for unit in whole}) // min(limit, 2000))
                    assert len(pages) == max(1, full), (question.name, limit)
                if not whole:
                    empty.add((question.name, row["broker_id"]))
    # A node may keep none of a few transactions.
    assert {name for name, _ in empty} <= {"ListTransactions", "DescribeTransactions"}
    assert len(empty) < NODES * 2


async def test_all_groups_are_those_of_all_nodes(place: Place) -> None:
    listed = []
    for broker in place.cluster.brokers.values():
        async with raw_client(host_and_port(broker.address)) as direct:
            listed += (await direct.ask(LIST_GROUPS, 5, {}))["groups"]
    question = Question("ListGroups", LIST_GROUPS, 5, {})
    whole = _units(question, [{"groups": listed}])
    assert len(whole) >= GROUPS
    async with raw_client(place.address) as client:
        for limit in (7 if GROUPS < 100 else 97, 2000):
            assert _units(question, await _pages(client, question, limit)) == whole


def test_tools_print_moves_and_open_transactions(place: Place) -> None:
    commands = [
        (_TOOLS + "reassign.ReassignPartitionsCommand", "--list", "topic-000000-0"),
        (_TOOLS + "TransactionsCommand", "list", "transaction-0"),
    ]
    with kafka_tools() as run:
        for name, argument, expected in commands:
            direct, through = (
                sorted(run(name, "--bootstrap-server", address, argument))
                for address in (place.cluster.addresses[0], place.gateway.ready["kafka"])
            )
            assert through == direct, name
            assert expected in "\n".join(direct), direct


async def test_a_pass_goes_on_at_a_gateway_that_was_restarted(place: Place) -> None:
    question = Question("Metadata", METADATA, 12, {"topics": None})
    groups = Question("ListGroups", LIST_GROUPS, 5, {})
    kept: dict[str, list[Fields]] = {}
    for each in (question, groups):
        async with raw_client(place.address) as client:
            body = {**each.body, "response_pagination_limit": 20}
            kept[each.name] = [await client.ask(each.api, each.version, body)]
    place.gateway.stop()
    place.gateway.start()
    for each, expected in ((question, TOPICS), (groups, GROUPS)):
        async with raw_client(place.address) as client:
            pages = kept[each.name]
            while pages[-1]["next_cursor"] is not None:
                body = {
                    **each.body,
                    "response_pagination_limit": 2000,
                    "cursor": pages[-1]["next_cursor"],
                }
                pages.append(await client.ask(each.api, each.version, body))
        keys = [unit[0] for unit in _units(each, pages)]
        assert len(keys) == len(set(keys)) >= expected


@pytest.mark.skipif(NODES < 3, reason="the others elect a controller: KAFKA_CLUSTER has three nodes")
async def test_while_the_controller_moves_changes_are_made_or_an_error(place: Place) -> None:
    former = _controller(place)
    others = [number for number in place.cluster.brokers if number != former]
    outcomes: dict[str, str] = {}
    stop = asyncio.Event()

    async def change() -> None:
        while not stop.is_set():
            name = f"moved-{len(outcomes)}"
            async with AdminClient(place.gateway.ready["kafka"], api_timeout=60) as client:
                made = await client.create_topics([NewTopic(name)])
            error = made.errors.get(name)
            assert error is None or isinstance(error, TimeoutException | NotControllerException)
            outcomes[name] = "made" if error is None else "error"

    changing = asyncio.create_task(change())
    try:
        await eventually(lambda: "made" in outcomes.values())
        # It stands still, and is given up by the others: it goes on as one that follows.
        place.cluster.brokers[former].send_signal(signal.SIGSTOP)
        try:
            while await asyncio.to_thread(_controller, place, others[0]) in {former, -1}:
                pass
        finally:
            place.cluster.brokers[former].send_signal(signal.SIGCONT)
        before = len(outcomes)
        await eventually(lambda: "made" in [*outcomes.values()][before:], _ANSWERED)
    finally:
        stop.set()
        await changing
    async with AdminClient(place.gateway.ready["kafka"]) as client:
        listed = (await client.list_topics()).names()
        assert {name for name, outcome in outcomes.items() if outcome == "made"} <= set(listed)
        (await client.delete_topics([name for name in listed if name.startswith("moved-")])).all()


async def test_while_a_node_goes_and_comes_an_answer_is_an_error_or_the_whole(place: Place) -> None:
    # The controller is killed where others can take its place.
    number = _controller(place) if NODES > 2 else NODES
    others = [broker for key, broker in place.cluster.brokers.items() if key != number]
    topics, wholes = len(place.contents.topics), set(place.contents.groups)
    whole_without = await _groups_of(others)
    outcomes: set[str] = set()
    stop = asyncio.Event()

    async def ask() -> None:
        while not stop.is_set():
            try:
                async with AdminClient(place.gateway.ready["kafka"], api_timeout=5) as client:
                    listed = {row.name for row in await client.list_topics()}
                    assert topics <= len(listed) <= topics + 2
                    # The client asks each node: of one that the cluster has given up nobody lists groups.
                    groups = {row.group_id for row in await client.list_groups()}
                    assert groups >= wholes or groups >= whole_without
                    outcomes.add("whole" if groups >= wholes else "without")
            except ClientError:
                outcomes.add("error")
            await asyncio.sleep(0.1)

    asking = asyncio.create_task(ask())
    try:
        await eventually(lambda: "whole" in outcomes)
        place.cluster.brokers[number].kill()
        await eventually(lambda: outcomes >= {"error"} or "without" in outcomes)
        async with (
            raw_client(host_and_port(others[0].address)) as direct,
            raw_client(place.address) as client,
        ):
            await eventually(lambda: _has_lost_groups(direct), _ANSWERED)
            # At the listener's own port there is no part of the list.
            answer = await client.ask(LIST_GROUPS, 5, {})
            assert (answer["error_code"], answer["groups"]) == (15, [])
        outcomes.clear()
        await asyncio.to_thread(place.cluster.brokers[number].start)
        await eventually(lambda: "whole" in outcomes, _ANSWERED)
    finally:
        stop.set()
        await asking


async def _has_lost_groups(client: RawKafkaClient) -> bool:
    """Whether the cluster has given up the node that keeps some groups."""
    rows = (await client.ask(METADATA, 12, {"topics": [{"name": "__consumer_offsets"}]}))["topics"]
    return any(part["leader_id"] < 0 for row in rows for part in row["partitions"])


async def _groups_of(brokers: Sequence[KafkaBroker]) -> set[str]:
    found: set[str] = set()
    for broker in brokers:
        async with raw_client(host_and_port(broker.address)) as direct:
            found |= {row["group_id"] for row in (await direct.ask(LIST_GROUPS, 5, {}))["groups"]}
    return found


def _controller(place: Place, asked: int = 1) -> int:
    """The node that leads the quorum, by Kafka's own tool at another node."""
    where = ("--bootstrap-server", place.cluster.brokers[asked].address)
    with kafka_tools() as run:
        said = "\n".join(run(_TOOLS + "MetadataQuorumCommand", *where, "describe", "--status"))
    found = re.search(r"^LeaderId:\s+(-?\d+)", said, re.MULTILINE)
    assert found is not None, said
    return int(found[1])
