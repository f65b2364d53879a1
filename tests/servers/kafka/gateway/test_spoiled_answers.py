"""A node that answers what is no answer: its part is an error, and the gateway goes on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from broker_core.wire.kafka import LIST_GROUPS, METADATA, ErrorCode
from tests.support.kafka_gateway import address_of, gateway
from tests.support.kafka_serving import kafka_broker, raw_client
from tests.support.ports import free_port

#: What becomes of an answer with its length: all that is sent in its place.
_SPOILED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "garbage": lambda frame: frame[:8] + b"\xff" * (len(frame) - 8),
    "half": lambda frame: frame[: len(frame) // 2],
    "huge": lambda frame: (2**31 - 1).to_bytes(4, "big") + frame[4:],
    "negative": lambda frame: b"\xff" * 4 + frame[4:],
    "of another request": lambda frame: frame[:4] + b"\x7f" * 4 + frame[8:],
    "rows that are not there": lambda frame: frame[:15] + b"\xff\xff\xff\xff\x0f" + frame[20:],
    "nothing": lambda _frame: b"",
}


class _Spoiler:
    """What is between the gateway and its node: answers to ListGroups are spoiled as long as ``spoil`` is set."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.target = ("", 0)
        self.spoil: Callable[[bytes], bytes] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection(*self.target)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    frame = await _frame(reader)
                    here.write(frame)
                    answer = await _frame(there)
                    is_spoiled = self.spoil is not None and frame[4:6] == LIST_GROUPS.key.to_bytes(2, "big")
                    writer.write(self.spoil(answer) if self.spoil is not None and is_spoiled else answer)
                    if is_spoiled:
                        await writer.drain()
                        return
        finally:
            here.close()
            writer.close()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(4)
    return head + await reader.readexactly(int.from_bytes(head, "big"))


@asynccontextmanager
async def _spoiler() -> AsyncIterator[_Spoiler]:
    spoiler = _Spoiler(free_port())
    async with await asyncio.start_server(spoiler.serve, "127.0.0.1", spoiler.port):
        yield spoiler


@pytest.mark.parametrize("how", _SPOILED)
async def test_a_spoiled_answer_is_an_error(tmp_path: Path, how: str) -> None:
    async with _spoiler() as spoiler:
        address = f"127.0.0.1:{spoiler.port}"
        async with kafka_broker(tmp_path, node_id=7, advertised=address) as node:
            assert node.kafka_address is not None
            spoiler.target = node.kafka_address
            async with gateway(tmp_path, address) as front:
                spoiler.spoil = _SPOILED[how]
                host, _, port = address_of(front).rpartition(":")
                async with raw_client((host, int(port))) as client:
                    client.send(LIST_GROUPS, 4, {})
                    message = await client.message()
                    # Kafka's code for it, or the end of the connection: no group is not an answer.
                    code = ErrorCode.COORDINATOR_NOT_AVAILABLE.to_bytes(2, "big")
                    assert not message or message[9:11] == code
                spoiler.spoil = None
                async with raw_client((host, int(port))) as client:
                    assert (await client.ask(LIST_GROUPS, 4, {}))["error_code"] == 0
                    assert (await client.ask(METADATA, 12, {"topics": None}))["error_code"] == 0
