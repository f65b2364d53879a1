"""The connections of a server, without sockets."""

from __future__ import annotations

import asyncio
from typing import Any

from broker_core.servers.admission import ServerLoad
from broker_core.servers.connection.open_connections import OpenConnections
from tests.support.eventually import eventually


class Connection:
    """A connection that notes its calls."""

    def __init__(self, of: Any, *, drains: bool = False) -> None:
        self.of = of
        self.drains = drains
        self.told: list[str] = []
        self.unfinished = 0

    def drop_unfinished(self) -> None:
        self.told.append("drop")

    def drain(self) -> None:
        self.told.append("drain")
        if self.drains:
            self.of.closed(self)

    def abort(self) -> None:
        self.told.append("abort")
        asyncio.get_running_loop().call_soon(self.of.closed, self)


def _opened(load: ServerLoad, count: int, *, drains: bool = False) -> tuple[Any, list[Connection]]:
    connections: Any = OpenConnections(load)
    each = [Connection(connections, drains=drains) for _ in range(count)]
    for connection in each:
        connections.opened(connection)
    return connections, each


async def test_they_are_counted() -> None:
    load = ServerLoad()
    connections, (first, second) = _opened(load, 2)
    assert (len(connections), load.connections) == (2, 2)
    assert set(connections) == {first, second}
    connections.closed(first)
    assert (len(connections), load.connections) == (1, 1)


async def test_who_holds_the_most_of_an_unfinished_frame_goes_for_a_whole_command() -> None:
    load = ServerLoad()
    _, each = _opened(load, 3)
    each[1].unfinished, each[2].unfinished = 5000, 6000
    load.make_room(6001)
    assert [one.told for one in each] == [[], [], []]
    load.make_room(6000)
    assert [one.told for one in each] == [[], [], ["drop"]]


async def test_nobody_goes_where_no_frame_is_unfinished() -> None:
    load = ServerLoad()
    load.make_room(0)
    _, each = _opened(load, 1)
    load.make_room(0)
    assert each[0].told == []


async def test_drained_connections_end_by_themselves() -> None:
    connections, each = _opened(ServerLoad(), 2, drains=True)
    await connections.close(60)
    assert [one.told for one in each] == [["drain"], ["drain"]]


async def test_who_does_not_end_is_closed() -> None:
    load = ServerLoad()
    connections, each = _opened(load, 2)
    await connections.close(0)
    assert [one.told for one in each] == [["drain", "abort"], ["drain", "abort"]]
    assert load.connections == 0


async def test_a_connection_of_the_last_moment_is_closed() -> None:
    connections, _ = _opened(ServerLoad(), 0)
    await connections.close(0)
    late = Connection(connections)
    connections.opened(late)
    assert late.told == ["abort"]
    await eventually(lambda: not len(connections))


async def test_the_end_waits_for_cancelled_requests() -> None:
    load = ServerLoad()
    connections, _ = _opened(load, 0)
    ended: list[str] = []

    async def request() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("request")

    task = asyncio.create_task(request())
    load.request_tasks.add(task)
    task.add_done_callback(load.request_tasks.discard)
    await asyncio.sleep(0)
    task.cancel()
    await connections.close(0)
    assert ended == ["request"]
