"""A client of one or more addresses: its questions, what it is given, and its life."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from broker_core.client import (
    ClientError,
    ConnectionLost,
    InvalidServiceUrl,
    LookupClient,
    OperationTimeout,
    ServerRefused,
    Tls,
    Token,
    TopicListing,
    UnexpectedAnswer,
    topics_hash,
)
from broker_core.errors import InvalidName, ServerError
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.testing import serve
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.client.scripted_listings import TOPIC, ended, listing_of, questions
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer

pytestmark = pytest.mark.usefixtures("no_pauses")


async def test_the_question_of_pip_452_and_its_answer() -> None:
    script = listing_of([TOPIC], filtered=True, topics_hash="0011", changed=True)
    async with ScriptedServer(script) as server, LookupClient(server.url) as client:
        assert not server.peers, "nothing is connected before the first question"
        found = await client.get_topics_under_namespace(
            "t/n", Mode.ALL, "t/n/x.*", "0000", {"b": "2", "a": "1"}
        )
        assert found == [TOPIC]
        assert (found.filtered, found.changed, found.topics_hash) == (True, True, "0011")
        (asked,) = questions(server)
        assert (asked.namespace, asked.mode, asked.topics_pattern, asked.topics_hash) == (
            "t/n",
            Mode.ALL,
            "t/n/x.*",
            "0000",
        )
        assert [(pair.key, pair.value) for pair in asked.properties] == [("a", "1"), ("b", "2")]
        await client.get_topics_under_namespace(NamespaceName("t", "n"))
        assert not questions(server)[1].HasField("topics_pattern")
        assert len(server.peers) == 1


async def test_an_unchanged_listing() -> None:
    script = listing_of([], filtered=True, topics_hash="0011", changed=False)
    async with ScriptedServer(script) as server, LookupClient(server.url) as client:
        found = await client.get_topics_under_namespace("t/n", topics_hash="0011")
        assert (found.changed, len(found), found.topics_hash) == (False, 0, "0011")


async def test_it_filters_what_the_server_did_not() -> None:
    script = listing_of([TOPIC, f"{TOPIC}y", f"{TOPIC}-partition-0"])
    async with ScriptedServer(script) as server, LookupClient(server.url) as client:
        found = await client.get_topics_under_namespace("t/n", topics_pattern="persistent://t/n/x")
        assert found == [TOPIC, f"{TOPIC}-partition-0"]
        assert (found.filtered, found.changed) == (False, True)
        again = await client.get_topics_under_namespace(
            "t/n", topics_pattern="persistent://t/n/x", topics_hash=found.topics_hash
        )
        assert not again.changed


async def test_a_name_that_is_none_is_not_asked_for() -> None:
    """A broker closes the connection over a bad namespace, which would be asked again and again."""
    async with ScriptedServer() as server, LookupClient(server.url) as client:
        for ask in (
            client.get_topics_under_namespace("namespace"),
            client.lookup("topic"),
            client.partitioned_metadata("persistent://t/n/"),
        ):
            with pytest.raises(InvalidName):
                await ask
        assert not server.peers


async def test_partitions_and_their_creation() -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        asked = command.partitionMetadata
        peer.send(commands.partitioned_metadata_response(asked.request_id, 3 if asked.topic == TOPIC else 0))

    async with ScriptedServer(script) as server, LookupClient(server.url) as client:
        assert await client.partitioned_metadata(TOPIC) == 3
        assert await client.partitioned_metadata(TopicName.parse(f"{TOPIC}y"), auto_create=True) == 0
        asked = [each.partitionMetadata for each in server.received if each.HasField("partitionMetadata")]
        assert [each.metadata_auto_creation_enabled for each in asked] == [False, True]


async def test_what_is_asked_when_it_is_closed_fails() -> None:
    async with ScriptedServer() as server:
        client = LookupClient(server.url)
        asked: list[asyncio.Task[Any]] = [
            asyncio.create_task(client.get_topics_under_namespace("t/n")),
            asyncio.create_task(client.lookup(TOPIC)),
        ]
        await eventually(lambda: questions(server))
        await client.close()
        await ended(asked)
        assert all(isinstance(each.exception(), ConnectionLost) for each in asked)
        for ask in (client.lookup(TOPIC), client.get_topics_under_namespace("t/n")):
            with pytest.raises(ConnectionLost, match="is closed"):
                await ask
        await client.close()
        await eventually(server.peers[0].reader.at_eof)


async def test_who_waits_for_a_server_hears_of_the_end() -> None:
    client = LookupClient(f"pulsar://127.0.0.1:{free_port()}", operation_timeout=AGES)
    asked = asyncio.create_task(client.get_topics_under_namespace("t/n"))
    await eventually(lambda: client._service.problem not in (None, "not connected yet"))
    await client.close()
    with pytest.raises(ConnectionLost, match="is closed"):
        await asked


def test_urls_that_are_none() -> None:
    for url in ("127.0.0.1:6650", "kafka://127.0.0.1", "pulsar://a b"):
        with pytest.raises(InvalidServiceUrl):
            LookupClient(url)
    with pytest.raises(InvalidServiceUrl, match="needs TLS"):
        LookupClient("pulsar://127.0.0.1", auth=Tls("client.pem"))


def test_what_it_shows() -> None:
    assert repr(LookupClient("pulsar://a,b", auth=Token("a.b.c"))) == "<LookupClient of pulsar://a,b>"


@pytest.mark.parametrize("road", ["pulsar", "http"])
async def test_this_server(road: str) -> None:
    names = [f"persistent://public/default/orders-{number}" for number in range(300)]
    async with (
        serve(topics=names) as server,
        LookupClient(server.url if road == "pulsar" else server.http_url) as client,
    ):
        await server.create("persistent://public/default/parted x", partitions=3)
        question: dict[str, Any] = {"topics_pattern": "persistent://public/default/orders-1.*"}
        found = await client.get_topics_under_namespace("public/default", **question)
        assert isinstance(found, TopicListing)
        assert (len(found), found.filtered) == (111, True)
        assert all(name in found for name in names if "-1" in name)
        assert found.topics_hash == topics_hash(found)
        again = await client.get_topics_under_namespace(
            "public/default", topics_hash=found.topics_hash, **question
        )
        assert not again.changed
        assert len(await client.get_topics_under_namespace("public/unknown")) == 0
        assert await client.partitioned_metadata(names[0]) == 0
        assert await client.partitioned_metadata("persistent://public/default/parted x") == 3
        with pytest.raises(ServerRefused) as refused:
            await client.partitioned_metadata("persistent://public/default/none")
        assert refused.value.code is ServerError.TopicNotFound
        with pytest.raises(ServerRefused) as refused:
            await client.get_topics_under_namespace("public/default", topics_pattern="(")
        assert refused.value.code is ServerError.MetadataError
        with pytest.raises(ClientError, match="no brokers behind it"):
            await client.lookup(names[0])


@pytest.mark.parametrize("road", ["pulsar", "http"])
async def test_this_server_in_each_mode(road: str) -> None:
    both = ["non-persistent://t/n/a", "persistent://t/n/a"]
    listed = {Mode.NON_PERSISTENT: both[:1], Mode.PERSISTENT: both[1:], Mode.ALL: both}
    async with (
        serve(topics=both) as server,
        LookupClient(server.url if road == "pulsar" else server.http_url) as client,
    ):
        for mode in Mode:
            assert sorted(await client.get_topics_under_namespace("t/n", mode)) == listed[mode]


async def test_this_server_above_its_cap() -> None:
    """Over HTTP it answers in pages, which have no hash of the whole: that is computed."""
    # A link to the page behind such a name is longer than most clients take.
    names = [f"persistent://public/default/o-{number:0{16_000 if number % 9 else 6}}" for number in range(30)]
    async with (
        serve(topics=names, settings={"http": {"most_items": 7}}) as server,
        LookupClient(server.http_url) as client,
    ):
        question: dict[str, Any] = {"topics_pattern": "public/default/o-0.*"}
        found = await client.get_topics_under_namespace("public/default", **question)
        assert sorted(found) == sorted(names)
        assert (found.filtered, found.topics_hash) == (True, topics_hash(names))
        again = await client.get_topics_under_namespace(
            "public/default", topics_hash=found.topics_hash, **question
        )
        assert not again.changed


@pytest.mark.parametrize("name", ["operation_timeout", "connect_timeout", "keep_alive"])
@pytest.mark.parametrize("value", [float("nan"), -1])
def test_times_that_are_none(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is a number of seconds"):
        LookupClient("pulsar://a", **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["concurrent_requests", "max_answer"])
def test_numbers_that_are_too_small(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 1 at least"):
        LookupClient("pulsar://a", **{name: 0})  # type: ignore[arg-type]


async def test_a_timeout_that_is_no_number() -> None:
    async with LookupClient("pulsar://a") as client:
        with pytest.raises(ValueError, match="timeout is a number of seconds"):
            await client.lookup("persistent://t/n/x", timeout=float("nan"))


async def test_an_answer_above_the_limit_is_an_error_at_once() -> None:
    topics = [f"persistent://t/n/topic-{index:06d}" for index in range(5_000)]

    async with (
        ScriptedServer(listing_of(topics)) as server,
        LookupClient(server.url, operation_timeout=AGES, max_answer=100_000) as client,
    ):
        with pytest.raises(UnexpectedAnswer, match="over the limit of 100000 bytes"):
            await client.get_topics_under_namespace("t/n")


async def test_a_host_that_is_no_name() -> None:
    async with LookupClient(f"pulsar://{'a' * 300}", operation_timeout=AGES) as client:
        with pytest.raises(InvalidServiceUrl, match="is no name"):
            await client.lookup("persistent://t/n/x")


async def test_another_event_loop_is_refused_in_words() -> None:
    async with LookupClient("pulsar://127.0.0.1:1") as client:
        with pytest.raises(OperationTimeout):
            await client.lookup("persistent://t/n/x", timeout=0)

        async def ask() -> None:
            with pytest.raises(RuntimeError, match="belongs to another event loop"):
                await client.lookup("persistent://t/n/x")
            with pytest.raises(RuntimeError, match="belongs to another event loop"):
                await client.close()

        await asyncio.to_thread(asyncio.run, ask())


async def test_closing_goes_on_when_who_closes_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    client = LookupClient("pulsar://127.0.0.1:1")
    going_on, closed = asyncio.Event(), []

    async def close() -> None:
        await going_on.wait()
        closed.append(True)

    monkeypatch.setattr(client._service, "close", close)
    first = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    going_on.set()
    await client.close()
    assert closed == [True]


async def test_a_client_that_is_dropped_leaves_no_connection() -> None:
    async with serve(topics=["persistent://public/default/a"]) as server:
        client = LookupClient(server.url)
        await client.get_topics_under_namespace("public/default")
        service: Any = client._service
        assert service._service.connections == 1
        del client
        gc.collect()
        await eventually(lambda: service._service.connections == 0)
