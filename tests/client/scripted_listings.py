"""Listings of a scripted server, for tests of clients."""

from __future__ import annotations

import asyncio
from typing import Any

from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.scripted_server import Peer, Script, ScriptedServer

TOPIC = "persistent://t/n/x"


def listing_of(topics: list[str], **fields: Any) -> Script:
    async def script(peer: Peer, command: BaseCommand) -> None:
        peer.send(answer(command, topics, **fields))

    return script


def answer(command: BaseCommand, topics: list[str], **fields: Any) -> bytes:
    request = command.getTopicsOfNamespace.request_id
    found = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE)
    body = found.getTopicsOfNamespaceResponse
    body.request_id = request
    body.topics.extend(topics)
    for name, value in fields.items():
        setattr(body, name, value)
    return commands.encode(found)


def questions(server: ScriptedServer) -> list[Any]:
    return [
        each.getTopicsOfNamespace
        for each in server.received
        if each.type == BaseCommand.GET_TOPICS_OF_NAMESPACE
    ]


async def ended(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
