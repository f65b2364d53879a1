"""Sends hostile requests to a server from many connections, and counts what is answered."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.servers.http.hostile.hostile_requests import Hostile

__all__ = ["Attacked", "attack", "may_be"]

_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
#: Bytes of an answer that are read.
_MOST: Final = 1 << 20
#: Seconds after which an answer that does not end is left; the server gives up a head, or a body, after 15.
_PATIENCE: Final = 2.0
#: Seconds for an answer that has to come: a busy machine may stand still for some.
_LONG_PATIENCE: Final = 60.0
#: Closing resets the connection, so that the ports of a hundred thousand of them are free at once.
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass
class Attacked:
    """``statuses`` counts answers by kind and status; 0: the connection ended, or the client left, without one."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    #: Examples of answers with 5xx, and of good requests that were not answered with 200.
    wrong: list[tuple[Hostile, bytes]] = field(default_factory=list)

    def of(self, status: int) -> int:
        """How many answers had it."""
        return sum(count for (_, each), count in self.statuses.items() if each == status)


def may_be(request: Hostile, said: bytes) -> bool:
    """Whether a 5xx is one that is documented: a limit, and of the interface of brokers what this server has not."""
    _, _, target = request.pieces[0].partition(b" ")
    unserved = target.startswith((b"/admin/v2/", b"/lookup/v2/")) and said.startswith(b"HTTP/1.1 501 ")
    return unserved or said.startswith(b"HTTP/1.1 503 ")


async def attack(address: tuple[str, int], requests: Iterable[Hostile], *, clients: int = 8) -> Attacked:
    """Send all of these, ``clients`` at a time."""
    attacked = Attacked()
    left = iter(requests)
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(_client(address, left, attacked))
    return attacked


async def _client(address: tuple[str, int], requests: Iterator[Hostile], attacked: Attacked) -> None:
    for request in requests:
        said = await _ask(address, request)
        found = _STATUS.match(said)
        status = 0 if found is None else int(found[1])
        attacked.statuses[request.kind, status] += 1
        if status >= 500 or (request.fine and status != 200):
            attacked.wrong.append((request, said[:1000]))


async def _ask(address: tuple[str, int], request: Hostile) -> bytes:
    reader, writer = await asyncio.open_connection(*address, limit=_MOST)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    said = bytearray()
    try:
        async with asyncio.timeout(_LONG_PATIENCE if request.fine else _PATIENCE):
            for piece in request.pieces:
                writer.write(piece)
                await writer.drain()
            if request.half_closes:
                writer.write_eof()
            while request.waits and len(said) < _MOST and (piece := await reader.read(1 << 16)):
                said += piece
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.transport.abort()
    return bytes(said)
