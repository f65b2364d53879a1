"""The load of all connections together, and the choice of a connection to close."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.servers.connection.server_load import ConnectionTasks, ServerLoad
from tests.support.eventually import eventually

MIB = 1024 * 1024


class Connection:
    """A connection that notes its calls."""

    def __init__(self, load: Any, *, drains: bool = False) -> None:
        self.load = load
        self.drains = drains
        self.told: list[str] = []
        self.unfinished = 0

    def drop_unfinished(self) -> None:
        self.told.append("drop")
        self.load.hold(-self.unfinished)
        self.unfinished = 0

    def drain(self) -> None:
        self.told.append("drain")
        if self.drains:
            self.load.closed(self)

    def abort(self) -> None:
        self.told.append("abort")
        asyncio.get_running_loop().call_soon(self.load.closed, self)


def opened(load: Any, count: int, *, drains: bool = False) -> list[Connection]:
    each = [Connection(load, drains=drains) for _ in range(count)]
    for connection in each:
        load.opened(connection)
    return each


def test_there_is_room_up_to_64_mebibytes() -> None:
    load = ServerLoad()
    load.hold(63 * MIB)
    assert load.has_room_for(MIB)
    assert not load.has_room_for(MIB + 1)
    load.hold(-63 * MIB)
    assert load.has_room_for(64 * MIB)
    assert load.buffered_bytes == 0


def test_a_small_command_is_not_counted_and_needs_no_room() -> None:
    load = ServerLoad()
    assert [load.hold_command(size) for size in (4096, 4097)] == [0, 4097]
    assert load.buffered_bytes == 4097
    load.hold(64 * MIB)
    assert load.has_room_for(4096)
    assert not load.has_room_for(4097)


def test_who_holds_a_large_part_has_to_go_when_all_hold_too_much() -> None:
    load = ServerLoad()
    opened(load, 4)
    load.hold(64 * MIB)
    assert not load.is_too_much(64 * MIB)
    load.hold(1)
    assert load.is_too_much(17 * MIB)
    assert not load.is_too_much(15 * MIB)


def test_the_places_for_requests_are_those_of_the_settings() -> None:
    assert ServerLoad(1).slots.take()
    load = ServerLoad(1)
    load.slots.take()
    assert load.slots.are_taken


def test_the_largest_unfinished_frame_goes_for_a_whole_command() -> None:
    load = ServerLoad()
    each = opened(load, 3)
    each[1].unfinished, each[2].unfinished = 5000, 6000
    load.hold(64 * MIB)
    assert not load.has_room_for(6001)
    assert [one.told for one in each] == [[], [], []]
    assert load.has_room_for(6000)
    assert [one.told for one in each] == [[], [], ["drop"]]


def test_none_goes_if_no_frame_is_unfinished() -> None:
    load = ServerLoad()
    load.hold(64 * MIB)
    assert not load.has_room_for(5000)
    (only,) = opened(load, 1)
    assert not load.has_room_for(5000)
    assert only.told == []


async def test_drained_connections_end_by_themselves() -> None:
    load = ServerLoad()
    each = opened(load, 2, drains=True)
    await load.close(60)
    assert [one.told for one in each] == [["drain"], ["drain"]]


async def test_a_connection_that_does_not_end_is_closed() -> None:
    load = ServerLoad()
    each = opened(load, 2)
    await load.close(0)
    assert [one.told for one in each] == [["drain", "abort"], ["drain", "abort"]]
    assert not load.connections


async def test_a_connection_of_the_last_moment_is_closed() -> None:
    load = ServerLoad()
    await load.close(0)
    (late,) = opened(load, 1)
    assert late.told == ["abort"]
    await eventually(lambda: not load.connections)


async def test_the_end_waits_for_cancelled_requests() -> None:
    load = ServerLoad()
    ended: list[str] = []

    async def request() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("request")

    tasks = ConnectionTasks(load)
    tasks.start(request(), 1, lambda *_: None, None)
    await asyncio.sleep(0)
    tasks.cancel()
    await load.close(0)
    assert ended == ["request"]


@pytest.mark.parametrize("end", ["cancelled before it begins", "cancelled", "done", "failed"])
async def test_a_command_is_held_while_its_task_is_under_way(end: str) -> None:
    load, gate, ended = ServerLoad(), asyncio.Event(), list[tuple[str, asyncio.Task[Any]]]()
    tasks = ConnectionTasks(load)

    async def work() -> int:
        await gate.wait()
        return 7 if end == "done" else 1 // 0

    tasks.start(work(), 10_000, lambda of, task: ended.append((of, task)), "of")
    assert (len(tasks), load.buffered_bytes, len(load.request_tasks)) == (1, 10_000, 1)
    if end == "cancelled":
        await asyncio.sleep(0)
    if end.startswith("cancelled"):
        tasks.cancel()
    gate.set()
    await eventually(lambda: bool(ended))
    ((of, task),) = ended
    assert of == "of"
    assert (len(tasks), load.buffered_bytes, len(load.request_tasks)) == (0, 0, 0)
    if end == "done":
        assert task.result() == 7
    elif end == "failed":
        assert isinstance(task.exception(), ZeroDivisionError)
    else:
        assert task.cancelled()
