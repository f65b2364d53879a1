"""The end of a connection with a last frame, over a real socket and over a transport that cannot half-close."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker_core.servers.connection.last_frame import LastFrame
from tests.support.clock import time_passes
from tests.support.eventually import eventually


@asynccontextmanager
async def transport() -> AsyncIterator[tuple[asyncio.Transport, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    made, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    try:
        yield made, theirs
    finally:
        made.abort()
        theirs.close()


def last(made: asyncio.Transport) -> LastFrame:
    return LastFrame(made, b"no", send=made.write, is_idle=lambda: True)


async def test_the_frame_is_sent_and_then_nothing_more() -> None:
    loop = asyncio.get_running_loop()
    async with transport() as (made, theirs):
        end = last(made)
        assert await loop.sock_recv(theirs, 10) == b"no"
        assert await loop.sock_recv(theirs, 10) == b""
        assert not made.is_closing(), "the client closes"
        end.close()


async def test_a_client_that_does_not_close_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with transport() as (made, theirs):
        last(made)
        assert await asyncio.get_running_loop().sock_recv(theirs, 10) == b"no"
        time_passes(monkeypatch, 2.0)
        await eventually(made.is_closing)


async def test_a_client_that_floods_is_closed() -> None:
    async with transport() as (made, _):
        end = last(made)
        end.received(64 * 1024)
        assert not made.is_closing()
        end.received(1)
        assert made.is_closing()
        end.close()


async def test_it_ends_when_all_has_left() -> None:
    loop = asyncio.get_running_loop()
    async with transport() as (made, theirs):
        idle = False
        end = LastFrame(made, b"no", send=made.write, is_idle=lambda: idle)
        end.left()
        assert await loop.sock_recv(theirs, 10) == b"no"
        idle = True
        end.left()
        assert await loop.sock_recv(theirs, 10) == b""
        end.close()


async def test_a_transport_that_cannot_half_close_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with transport() as (made, theirs):
        monkeypatch.setattr(made, "can_write_eof", lambda: False)
        last(made)
        assert await asyncio.get_running_loop().sock_recv(theirs, 10) == b"no"
        await eventually(made.is_closing)


async def test_nothing_is_sent_where_the_connection_is_over() -> None:
    async with transport() as (made, _):
        sent: list[bytes] = []
        LastFrame(made, b"no", send=sent.append, is_idle=lambda: True)
        made.abort()
        await asyncio.sleep(0)
        assert not sent
