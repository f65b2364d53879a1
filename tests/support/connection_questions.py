"""The topics and patterns of ``ServerCnxTest``, which tests of a connection ask for."""

from __future__ import annotations

from typing import Any

from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.memory_lister import MemoryLister
from tests.support.raw_client import RawClient

__all__ = ["INVALID_AND_LONG", "MATCHING", "NAMES", "NAMESPACE", "OTHER", "SHORT", "TOO_LARGE_FOR_JAVA"]
__all__ += ["lister", "of_broker", "refused"]

NAMESPACE = "use/ns-abc"
MATCHING = [f"persistent://{NAMESPACE}/topic-{number}" for number in range(3)]
MATCHING += [f"persistent://{NAMESPACE}/topic-p-partition-{number}" for number in range(3)]
OTHER = [f"persistent://{NAMESPACE}/other-{number}" for number in range(4)]
NAMES = MATCHING + OTHER
SHORT = "use/ns-abc/topic-.*"
INVALID_AND_LONG = r"use/ns-abc/(t|o|to|p|i|c)+-?)+!"
TOO_LARGE_FOR_JAVA = 5 * 1024 * 1024 + 10 * 1024


def lister(names: list[str] | None = None, *, at_once: bool = True) -> MemoryLister:
    return MemoryLister(NAMES if names is None else names, at_once=at_once)


async def refused(client: RawClient, frame: bytes) -> Any:
    """The error that answers a frame, and that the connection lives on."""
    await client.send(frame)
    answer = await client.receive()
    assert answer.type == BaseCommand.ERROR, answer
    await client.ping()
    return answer.error


def of_broker(name: str, request_id: int) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.Type.ValueType(BaseCommand.DESCRIPTOR.fields_by_name[name].number))
    body = getattr(command, name)
    for field in body.DESCRIPTOR.fields:
        if field.is_required:
            setattr(body, field.name, "x" if field.cpp_type == field.CPPTYPE_STRING else request_id)
    body.request_id = request_id
    return command
