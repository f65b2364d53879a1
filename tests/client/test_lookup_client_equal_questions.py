"""A client asks equal questions once, and so many at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.client import (
    LookupClient,
    OperationTimeout,
)
from broker_core.names import Mode
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.client.scripted_listings import TOPIC, answer, ended, listing_of, questions
from tests.support.eventually import eventually
from tests.support.scripted_server import Peer, ScriptedServer

pytestmark = pytest.mark.usefixtures("no_pauses")


async def test_equal_questions_are_asked_once() -> None:
    async with ScriptedServer(listing_of([TOPIC])) as server, LookupClient(server.url) as client:
        asked = [
            asyncio.create_task(
                client.get_topics_under_namespace("t/n", properties={"a": "1"}, timeout=10 + each)
            )
            for each in range(50)
        ]
        assert await asyncio.gather(*asked) == [[TOPIC]] * 50
        assert len(questions(server)) == 1


async def test_questions_that_differ_are_asked_for_themselves() -> None:
    async with ScriptedServer(listing_of([TOPIC])) as server, LookupClient(server.url) as client:
        variants: list[dict[str, Any]] = [
            {},
            {"mode": Mode.ALL},
            {"topics_pattern": "t/n/.*"},
            {"topics_hash": "00"},
            {"properties": {"a": "1"}},
            {"properties": {"a": "2"}},
        ]
        await asyncio.gather(*(client.get_topics_under_namespace("t/n", **each) for each in variants))
        assert len(questions(server)) == 6


async def test_the_last_one_that_is_cancelled_gives_up_the_place_at_the_server() -> None:
    async with ScriptedServer() as server, LookupClient(server.url) as client:
        asked = [asyncio.create_task(client.get_topics_under_namespace("t/n")) for _ in range(3)]
        await eventually(lambda: questions(server))
        for task in asked:
            task.cancel()
        await ended(asked)
        await eventually(server.peers[0].reader.at_eof)
        with pytest.raises(OperationTimeout):
            await client.get_topics_under_namespace("t/n", timeout=0.05)
        await eventually(lambda: all(peer.reader.at_eof() for peer in server.peers))


async def test_so_many_requests_are_under_way_and_no_more() -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer, command: BaseCommand) -> None:
        await go_on.wait()
        peer.send(answer(command, [TOPIC]))

    async with ScriptedServer(script) as server, LookupClient(server.url, concurrent_requests=2) as client:
        asked = [
            asyncio.create_task(client.get_topics_under_namespace("t/n", topics_hash=str(each)))
            for each in range(10)
        ]
        await eventually(client._places.locked)
        go_on.set()
        assert await asyncio.gather(*asked) == [[TOPIC]] * 10
