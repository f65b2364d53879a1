from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from broker_core.access.clients import Client
from broker_core.access.peer import Peer
from broker_core.servers.connection import Closing
from broker_core.servers.kafka.request_handler import KafkaRequestHandler
from broker_core.servers.kafka.requests.call import CloseClient, HandlerRow, KafkaCall
from broker_core.servers.kafka.requests.request_job import RequestJob
from broker_core.servers.kafka.services import ShownNode
from broker_core.wire.kafka import METADATA, Fields, MalformedMessage, Reader, read_response, request_frame
from tests.support.kafka_calls import services_of


def handler(row: HandlerRow, clock: Callable[[], float] = lambda: 0.0) -> KafkaRequestHandler:
    def unasked(_: Any) -> None:
        raise AssertionError

    peer = Peer("127.0.0.1:5000", "kafka")
    return KafkaRequestHandler(
        services_of(), {row.api.key: row}, peer, ShownNode(1, "h", 9), clock, Client("kafka", ""), unasked
    )


def asked(version: int = 12) -> bytes:
    return request_frame(METADATA, version, 1, "me", {})[4:]


def test_what_is_known_at_once_is_answered_at_once() -> None:
    client = handler(HandlerRow(METADATA, lambda _: {}))
    assert isinstance(client.handle(asked()), bytes)
    assert client.client == "me"


def test_what_takes_waiting_is_a_job() -> None:
    async def later(_: KafkaCall) -> Fields:
        return {}

    done = handler(HandlerRow(METADATA, later)).handle(asked())
    assert isinstance(done, RequestJob)
    done.release()


def test_an_unknown_version_is_malformed() -> None:
    with pytest.raises(MalformedMessage):
        handler(HandlerRow(METADATA, lambda _: {})).handle(asked(14))


def test_a_handler_may_close_the_client() -> None:
    def close(_: KafkaCall) -> Fields:
        raise CloseClient("the catalogue cannot be read")

    done = handler(HandlerRow(METADATA, close)).handle(asked())
    assert isinstance(done, Closing)
    assert done.reason == "unanswered"


def test_a_silent_client_is_given_up() -> None:
    client = handler(HandlerRow(METADATA, lambda _: {}))
    ticks = [client.tick(quiet=True) for _ in range(22)]
    assert ticks[:20] == [None] * 20
    assert isinstance(ticks[20], Closing)


def test_nothing_is_answered_while_draining() -> None:
    client = handler(HandlerRow(METADATA, lambda _: {}))
    client.draining = True
    assert client.handle(asked()) is None


async def test_a_large_request_is_not_read_on_the_event_loop() -> None:
    async def later(call: KafkaCall) -> Fields:
        return {"throttle_time_ms": len(call.body["topics"])}

    topics = [{"name": f"orders-{number:05}"} for number in range(10_000)]
    message = request_frame(METADATA, 9, 1, "me", {"topics": topics})[4:]
    done = handler(HandlerRow(METADATA, later), asyncio.get_running_loop().time).handle(message)
    assert isinstance(done, RequestJob)
    body = (await done.answer()).body
    assert not isinstance(body, bytes | memoryview)
    frame = b"".join(iter(lambda: bytes(body.read(100)), b""))
    assert read_response(METADATA, 9, frame[4:])[1]["throttle_time_ms"] == 10_000


async def test_a_request_whose_rows_stay_bytes_is_read_on_the_event_loop_unless_it_is_long() -> None:
    async def later(call: KafkaCall) -> Fields:
        return {"throttle_time_ms": int(call.body["thread"] == threading.get_ident())}

    def read(_: Reader, __: int) -> Fields:
        return {"thread": threading.get_ident()}

    row = HandlerRow(METADATA, later, read=read)
    for count, is_here in ((300, 1), (1_000, 0)):
        topics = [{"name": f"orders-{number:05}"} for number in range(count)]
        message = request_frame(METADATA, 9, 1, "me", {"topics": topics})[4:]
        done = handler(row, asyncio.get_running_loop().time).handle(message)
        assert isinstance(done, RequestJob)
        body = (await done.answer()).body
        assert not isinstance(body, bytes | memoryview)
        frame = bytes(body.read(1000))
        assert read_response(METADATA, 9, frame[4:])[1]["throttle_time_ms"] == is_here
