"""Replies that are known later: what they hold, and that nothing stays of them."""

from __future__ import annotations

import asyncio

from broker_core.servers.admission import ServerLoad
from broker_core.servers.connection.awaited_replies import AwaitedReplies
from broker_core.servers.connection.command_handler import Awaited, Closing
from tests.support.eventually import eventually


class Replies:
    def __init__(self) -> None:
        self.load = ServerLoad()
        self.replied: list[bytes | Closing | None] = []
        self.failed: list[BaseException] = []
        self.awaited = AwaitedReplies(self.load, replied=self.replied.append, failed=self.failed.append)
        self.gate = asyncio.Event()

    async def reply(self) -> bytes:
        await self.gate.wait()
        return b"reply"


async def test_commands_wait_until_the_reply_is_there() -> None:
    r = Replies()
    assert r.awaited.start(Awaited(r.reply), 10)
    assert r.awaited.holds
    assert len(r.load.request_tasks) == 1
    r.gate.set()
    await eventually(lambda: r.replied == [b"reply"])
    assert not r.awaited.holds
    assert not r.load.request_tasks


async def test_commands_do_not_wait_where_they_need_not() -> None:
    r = Replies()
    assert r.awaited.start(Awaited(r.reply, holds=False), 10)
    assert not r.awaited.holds
    r.awaited.cancel()
    await eventually(lambda: not r.load.request_tasks)
    assert (r.replied, r.failed) == ([], [])


async def test_large_commands_are_counted_and_refused_without_room() -> None:
    r = Replies()
    assert r.awaited.start(Awaited(r.reply), 4096)
    assert r.load.buffered_bytes == 0
    assert r.awaited.start(Awaited(r.reply), 50 * 1024 * 1024)
    assert r.load.buffered_bytes == 50 * 1024 * 1024
    assert not r.awaited.start(Awaited(r.reply), 50 * 1024 * 1024)
    r.awaited.cancel()
    await eventually(lambda: r.load.buffered_bytes == 0)


async def test_a_failure_is_told() -> None:
    r = Replies()

    async def fails() -> bytes:
        raise KeyError("bug")

    r.awaited.start(Awaited(fails), 10)
    await eventually(lambda: len(r.failed) == 1)
    assert not r.awaited.holds
