"""The running requests of one connection: their number, and the resources that each releases."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.servers.admission import ServerLoad
from broker_core.servers.connection.requests_under_way import RequestsUnderWay
from tests.support.eventually import eventually


class Noted:
    def __init__(self, load: ServerLoad) -> None:
        self.errors: list[BaseException] = []
        self.ends = 0
        self.released = 0
        self.requests = RequestsUnderWay(load, failed=self.errors.append, ended=self.end)

    def end(self) -> None:
        self.ends += 1

    def release(self) -> None:
        self.released += 1

    async def wait(self, gate: asyncio.Event) -> None:
        await gate.wait()

    async def fail(self) -> None:
        raise KeyError("bug")


async def test_a_request_gives_back_all_that_it_took() -> None:
    load = ServerLoad(2)
    noted, gate = Noted(load), asyncio.Event()
    assert noted.requests.take_place(10_000)
    noted.requests.start(noted.wait(gate), 10_000, noted.release)
    assert (len(noted.requests), load.slots.taken, load.buffered_bytes, len(load.request_tasks)) == (
        1,
        1,
        10_000,
        1,
    )
    gate.set()
    await eventually(lambda: noted.ends == 1)
    assert (len(noted.requests), load.slots.taken, load.buffered_bytes, len(load.request_tasks)) == (
        0,
        0,
        0,
        0,
    )
    assert noted.released == 1


async def test_no_more_than_a_thousand_of_one_connection() -> None:
    load = ServerLoad()
    noted, gate = Noted(load), asyncio.Event()
    for _ in range(1000):
        assert noted.requests.take_place(1)
        noted.requests.start(noted.wait(gate), 1, noted.release)
    assert not noted.requests.take_place(1)
    assert Noted(load).requests.take_place(1), "another connection has its own"
    load.slots.give_back()
    noted.requests.cancel()
    await eventually(lambda: noted.ends == 1000)
    assert (noted.released, load.slots.taken, noted.errors) == (1000, 0, [])


@pytest.mark.parametrize("taken", ["slots", "bytes"])
async def test_no_place_where_the_server_has_none(taken: str) -> None:
    load = ServerLoad(1)
    noted = Noted(load)
    if taken == "slots":
        load.slots.take()
    else:
        load.hold(64 * 1024 * 1024)
    assert not noted.requests.take_place(5000)


async def test_an_error_that_no_request_may_end_with_is_told() -> None:
    load = ServerLoad()
    noted = Noted(load)
    assert noted.requests.take_place(1)
    noted.requests.start(noted.fail(), 1, noted.release)
    await eventually(lambda: noted.ends == 1)
    assert [type(error) for error in noted.errors] == [KeyError]
    assert noted.released == 1
