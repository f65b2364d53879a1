from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from broker_core.client import (
    ClientTls,
    ConnectionLost,
    ConnectTimeout,
    InvalidQuestion,
    TlsFailed,
    UnexpectedAnswer,
)
from broker_core.client.kafka.kafka_errors import (
    RebootstrapRequiredException,
    SaslAuthenticationException,
    UnsupportedSaslMechanismException,
    UnsupportedVersionException,
)
from broker_core.client.kafka.node_connection import ConnectionOptions, NodeConnection
from broker_core.client.kafka.sasl import Plain
from broker_core.wire.kafka import (
    API_VERSIONS,
    CREATE_TOPICS,
    LIST_TOPICS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
    Fields,
    response_frame,
)
from tests.support.certificates import Authority
from tests.support.clock import AGES
from tests.support.ports import free_port
from tests.support.scripted_kafka import Asked, Handler, ScriptedKafka

OPTIONS = ConnectionOptions(
    "test", connect_timeout=AGES, request_timeout=AGES, max_answer=1_000_000, software_version="1.2.3"
)


@asynccontextmanager
async def opened(node: ScriptedKafka, options: ConnectionOptions = OPTIONS) -> AsyncIterator[NodeConnection]:
    connection = await NodeConnection.open(("127.0.0.1", node.port), options)
    try:
        yield connection
    finally:
        await connection.close()


def names(*names: str) -> Fields:
    return {"topics": [{"name": name} for name in names]}


def sasl_node(answer: Fields, *, mechanisms: tuple[str, ...] = ("PLAIN",)) -> ScriptedKafka:
    def shake(asked: Asked) -> Fields:
        wrong = asked.value["mechanism"] not in mechanisms
        return {"error_code": 33 if wrong else 0, "mechanisms": list(mechanisms)}

    handlers: Mapping[Api, Handler] = {SASL_HANDSHAKE: shake, SASL_AUTHENTICATE: lambda _: answer}
    return ScriptedKafka(handlers)


async def test_the_latest_version_of_both_sides_is_asked() -> None:
    async with ScriptedKafka(versions={API_VERSIONS: (0, 4), METADATA: (0, 5)}) as node, opened(node) as asks:
        answer = await asks.ask(METADATA, {"topics": []})
        assert answer["cluster_id"] == "scripted"
        assert [(asked.api, asked.version) for asked in node.asked] == [(API_VERSIONS, 4), (METADATA, 5)]
        assert node.asked[0].value == {
            "client_software_name": "broker-core",
            "client_software_version": "1.2.3",
        }


async def test_what_a_node_does_not_have_is_not_sent() -> None:
    async with (
        ScriptedKafka(versions={METADATA: (0, 5), CREATE_TOPICS: (8, 9)}) as node,
        opened(node) as asks,
    ):
        assert not asks.has(LIST_TOPICS)
        with pytest.raises(UnsupportedVersionException, match="does not support ListTopics"):
            await asks.ask(LIST_TOPICS, {})
        with pytest.raises(UnsupportedVersionException, match="Metadata from version 10 on"):
            await asks.ask(METADATA, {}, least=10)
        with pytest.raises(UnsupportedVersionException):  # it is newer than the client
            await asks.ask(CREATE_TOPICS, {})
        assert (asks.has(METADATA, least=5), asks.has(METADATA, least=6)) == (True, False)
        assert len(node.asked) == 1


@pytest.mark.parametrize(("known", "then"), [(2, 2), (None, 0)])
async def test_an_older_node_says_which_version_of_the_greeting_it_has(known: int | None, then: int) -> None:
    def greet(asked: Asked) -> Fields | bytes:
        if asked.version > then:
            keys = [] if known is None else [{"api_key": 18, "min_version": 0, "max_version": known}]
            return b"".join(response_frame(API_VERSIONS, 0, 1, {"error_code": 35, "api_keys": keys}))
        return {"api_keys": [{"api_key": 3, "min_version": 0, "max_version": 1}]}

    async with ScriptedKafka({API_VERSIONS: greet}) as node, opened(node) as asks:
        assert asks.has(METADATA, least=1)
        assert [asked.version for asked in node.asked] == [4, then]


async def test_requests_are_pipelined_and_answered_in_order() -> None:
    first = asyncio.Event()

    async def list_topics(asked: Asked) -> Fields:
        if asked.value["list_internal"]:
            first.set()
            return names("second")
        return names("first")

    async with ScriptedKafka({LIST_TOPICS: list_topics}) as node, opened(node) as asks:
        both = [asyncio.create_task(asks.ask(LIST_TOPICS, {"list_internal": flag})) for flag in (False, True)]
        await first.wait()
        assert [(await each)["topics"][0]["name"] for each in both] == ["first", "second"]


async def test_who_is_cancelled_takes_nothing_from_the_next() -> None:
    held = asyncio.Event()

    async def list_topics(asked: Asked) -> Fields:
        await held.wait()
        return names(str(asked.value["list_internal"]))

    async with ScriptedKafka({LIST_TOPICS: list_topics}) as node, opened(node) as asks:
        given_up = asyncio.create_task(asks.ask(LIST_TOPICS, {"list_internal": False}))
        asked = asyncio.create_task(asks.ask(LIST_TOPICS, {"list_internal": True}))
        await asyncio.sleep(0)
        given_up.cancel()
        held.set()
        assert await asked == {"error_code": 0, "topics": [{"name": "True", "internal": False}]}


async def test_pages_are_probed_once_and_again_if_the_probe_was_given_up() -> None:
    asked = asyncio.Event()
    go_on = asyncio.Event()

    async def metadata(request: Asked) -> Fields:
        asked.set()
        await go_on.wait()
        return {"error_code": 42 if request.value["response_pagination_limit"] == -1 else 0}

    async with ScriptedKafka({METADATA: metadata}) as node, opened(node) as connection:
        first = asyncio.create_task(connection.has_pages())
        others = [asyncio.create_task(connection.has_pages()) for _ in range(3)]
        await asked.wait()
        first.cancel()
        go_on.set()
        assert await asyncio.gather(*others, return_exceptions=True) == [True, True, True]
        assert first.cancelled()
        assert await connection.has_pages()
        assert len(node.of(METADATA)) == 2


async def test_an_error_of_a_node_says_nothing_about_its_pages() -> None:
    codes = [129, 42]
    async with (
        ScriptedKafka({METADATA: lambda _: {"error_code": codes.pop(0)}}) as node,
        opened(node) as connection,
    ):
        with pytest.raises(RebootstrapRequiredException):
            await connection.has_pages()
        assert await connection.has_pages()


async def test_a_node_that_does_not_answer_is_left() -> None:
    async def silent(_asked: Asked) -> Fields:
        await asyncio.Event().wait()
        raise AssertionError

    async with (
        ScriptedKafka({LIST_TOPICS: silent}) as node,
        opened(node, replace(OPTIONS, request_timeout=0.05)) as asks,
    ):
        with pytest.raises(ConnectionLost, match="did not answer ListTopics within"):
            await asks.ask(LIST_TOPICS, {})
        assert not asks.is_usable
        with pytest.raises(ConnectionLost):
            await asks.ask(LIST_TOPICS, {})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\0\0\0\x08\0\0\x30\x39abcd", "answered request 12345"),
        (b"\x7f\xff\xff\xff", "announced an answer of 2147483647 bytes"),
        (b"\xff\xff\xff\xff", "announced an answer of -1 bytes"),
        (b"\0\0\0\x02ab", "announced an answer of 2 bytes"),
        (b"\0\0\0\x0a\0\0\0\x02\0\0\x7f\xff\xff\xff", "bytes that are no answer"),
        (b"\x15\x03\x03\0\x02\x02\x46", "speaks TLS only"),
        (b"HTTP/1.1 400 Bad Request", "speaks HTTP: name the port of its Kafka listener"),
    ],
)
async def test_an_answer_that_is_none_ends_the_connection(answer: bytes, said: str) -> None:
    async with ScriptedKafka({LIST_TOPICS: lambda _: answer}) as node, opened(node) as asks:
        with pytest.raises((UnexpectedAnswer, TlsFailed), match=said):
            await asks.ask(LIST_TOPICS, {})
        assert not asks.is_usable


async def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    twice = b"".join(response_frame(LIST_TOPICS, 0, 2, {"topics": []})) * 2

    async with ScriptedKafka({LIST_TOPICS: lambda _: twice}) as node, opened(node) as asks:
        await asks.ask(LIST_TOPICS, {})
        await asyncio.wait_for(asks._reading, 60)
        assert not asks.is_usable


async def test_a_connection_that_breaks_fails_what_is_under_way() -> None:
    async with ScriptedKafka({LIST_TOPICS: lambda _: None}) as node, opened(node) as asks:
        with pytest.raises(ConnectionLost, match="closed the connection"):
            await asks.ask(LIST_TOPICS, {})


async def test_nobody_there() -> None:
    with pytest.raises(ConnectionLost, match="cannot connect"):
        await NodeConnection.open(("127.0.0.1", free_port()), OPTIONS)


async def test_a_server_that_keeps_silent_is_given_up() -> None:
    async def silent(_asked: Asked) -> Fields:
        await asyncio.Event().wait()
        raise AssertionError

    async with ScriptedKafka({API_VERSIONS: silent}) as node:
        with pytest.raises(ConnectTimeout):
            await NodeConnection.open(("127.0.0.1", node.port), replace(OPTIONS, connect_timeout=0.05))


async def test_what_cannot_be_sent_harms_nothing() -> None:
    async with ScriptedKafka({CREATE_TOPICS: lambda _: {}}) as node, opened(node) as asks:
        with pytest.raises(InvalidQuestion, match="CreateTopics cannot be asked this"):
            await asks.ask(CREATE_TOPICS, {"topics": [{"name": "x", "num_partitions": 2**40}]})
        assert asks.is_usable
        assert asks.under_way == 0


async def test_a_large_answer_is_decoded_too() -> None:
    many = [f"topic-{number}" for number in range(30_000)]
    async with ScriptedKafka({LIST_TOPICS: lambda _: names(*many)}) as node, opened(node) as asks:
        answer = await asks.ask(LIST_TOPICS, {})
        assert [row["name"] for row in answer["topics"]] == many


async def test_a_client_that_is_slowed_waits_before_it_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async with (
        ScriptedKafka({CREATE_TOPICS: lambda _: {"throttle_time_ms": 2**31 - 1}}) as node,
        opened(node) as asks,
    ):
        await asks.ask(CREATE_TOPICS, {})
        monkeypatch.setattr(asyncio, "sleep", note)
        await asks.ask(CREATE_TOPICS, {})
    assert 50 < max(pauses) <= 60  # a server may not have it wait for weeks


async def test_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with ScriptedKafka(tls=authority.issue("node").server_context()) as node:
        async with opened(node, replace(OPTIONS, tls=ClientTls(ca=authority.ca))) as asks:
            assert (await asks.ask(METADATA, {"topics": []}))["cluster_id"] == "scripted"
        with pytest.raises(TlsFailed, match="not accepted"):
            await NodeConnection.open(("127.0.0.1", node.port), replace(OPTIONS, tls=ClientTls()))


async def test_authentication_is_agreed_and_done() -> None:
    node = sasl_node({})
    async with node, opened(node, replace(OPTIONS, sasl=Plain("alice", "secret"))) as asks:
        assert asks.is_usable
        assert [asked.api for asked in node.asked] == [API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE]
        assert node.of(SASL_AUTHENTICATE) == [{"auth_bytes": b"\0alice\0secret"}]


async def test_another_mechanism_is_named() -> None:
    async with sasl_node({}, mechanisms=("SCRAM-SHA-256", "OAUTHBEARER")) as node:
        with pytest.raises(
            UnsupportedSaslMechanismException, match="no PLAIN; it has SCRAM-SHA-256, OAUTHBEARER"
        ):
            await NodeConnection.open(
                ("127.0.0.1", node.port), replace(OPTIONS, sasl=Plain("alice", "secret"))
            )


async def test_a_wrong_password_is_told_and_not_shown() -> None:
    async with sasl_node({"error_code": 58, "error_message": "Authentication failed"}) as node:
        with pytest.raises(SaslAuthenticationException, match="Authentication failed") as raised:
            await NodeConnection.open(
                ("127.0.0.1", node.port), replace(OPTIONS, sasl=Plain("alice", "secret"))
            )
    assert "secret" not in repr(raised.value)


async def test_a_session_ends_before_the_server_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    node = sasl_node({"session_lifetime_ms": 100_000})
    async with node, opened(node, replace(OPTIONS, sasl=Plain("alice", "secret"))) as asks:
        assert asks.is_usable
        now = asks._loop.time()
        monkeypatch.setattr(asks._loop, "time", lambda: now + 90)
        assert not asks.is_usable
        monkeypatch.undo()
