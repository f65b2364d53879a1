from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker_core import Access, Refused, hookimpl
from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.servers.admission.connection_limits import ApiAdmission
from tests.support.api_serving import NAMESPACE, api_served
from tests.support.eventually import eventually

ONE, OTHER = Asker(remote_address="192.0.2.1:5"), Asker(remote_address="192.0.2.2:5")


def taken(admission: ApiAdmission, held: ExitStack, asker: Asker) -> int:
    """How many places an asker gets."""
    count = 0
    while True:
        try:
            held.enter_context(admission.place(asker))
        except TooManyRequests:
            return count
        count += 1


def test_nobody_has_more_than_half_where_others_ask() -> None:
    admission = ApiAdmission(80)
    with ExitStack() as held:
        assert taken(admission, held, ONE) == 40
        assert taken(admission, held, OTHER) == 10
        # Of one role it is one, wherever it asks from.
        roles = [Asker(role="r", remote_address=f"192.0.2.9:{port}") for port in range(20)]
        assert sum(taken(admission, held, asker) for asker in roles) == 10
        assert admission.taken == 60
    assert admission.taken == 0
    assert not admission._requests._of


def test_there_are_no_more_than_there_are() -> None:
    admission = ApiAdmission(8)
    with ExitStack() as held:
        for number in range(8):
            held.enter_context(admission.place(Asker(remote_address=f"192.0.2.{number}:1")))
        with pytest.raises(TooManyRequests) as refused:
            held.enter_context(admission.place(ONE))
    assert refused.value.cause is Cause.QUEUE


def test_a_server_that_stops_takes_none() -> None:
    admission = ApiAdmission()
    with admission.place(ONE):
        admission.drain()
        with pytest.raises(ListingFailed) as refused, admission.place(OTHER):
            pass
    assert refused.value.cause is Cause.UNAVAILABLE


def test_nobody_has_all_streams_and_they_end_with_the_server() -> None:
    admission, closed = ApiAdmission(64), list[str]()  # 16 streams
    with ExitStack() as held:

        def opened(client: str, held: ExitStack = held) -> None:
            held.enter_context(admission.stream(client, lambda: closed.append(client)))

        for _ in range(8):
            opened("a")
        with pytest.raises(TooManyRequests) as refused:
            opened("a")
        assert refused.value.cause is Cause.QUEUE
        with ExitStack() as others:
            for number in range(8):
                opened(f"b{number // 2}", others)
            with pytest.raises(TooManyRequests):
                opened("c")
        opened("c")
        assert admission.streams == 9
        admission.drain()
    assert closed == [*"aaaaaaaa", "c"]
    assert admission.streams == 0


def test_a_stream_that_begins_while_the_server_stops_ends_at_once() -> None:
    admission, closed = ApiAdmission(), list[str]()
    with admission.place(ONE):  # it waited for a gate, say
        admission.drain()
        with admission.stream("a", lambda: closed.append("a")):
            assert closed == ["a"]
    assert admission.streams == 0


def test_a_small_server_has_a_place_for_a_stream() -> None:
    for limit in (1, 8):
        with ApiAdmission(limit).stream("a", lambda: None):
            pass


class Waiting:
    """A gate that lets nobody through until a test opens it."""

    def __init__(self) -> None:
        self.waiting = 0
        self.opened = asyncio.Event()

    @hookimpl
    async def broker_core_authorize(self, access: Access) -> Refused | None:
        self.waiting += 1
        await self.opened.wait()
        return None


async def test_health_is_answered_however_many_requests_run(tmp_path: Path) -> None:
    gate = Waiting()
    async with api_served(tmp_path, plugins={"gate": gate}, http={"connections": 6}) as served:
        served.session.connector._limit_per_host = 0  # type: ignore[union-attr]
        asked = [asyncio.create_task(served.ask(f"{NAMESPACE}/topics")) for _ in range(50)]
        await eventually(lambda: gate.waiting == 3)
        await eventually(
            lambda: served.sample("http_requests_total", operation="listTopics", status="503") > 0
        )
        assert (await served.ask("/-/live")).status == 200
        assert served.sample("http_requests_under_way") == 3
        gate.opened.set()
        said = await asyncio.gather(*asked, return_exceptions=True)
        statuses = [each.status for each in said if not isinstance(each, BaseException)]
        assert set(statuses) == {200, 503}
        refused = next(each for each in said if not isinstance(each, BaseException) and each.status == 503)
        assert (refused.json["cause"], refused.headers["Retry-After"]) == ("QUEUE", "1")
        assert served.broker._http_servers is not None
        assert served.broker._http_servers._services.admission.taken == 0


async def test_a_client_that_is_gone_leaves_its_place(tmp_path: Path) -> None:
    gate = Waiting()
    async with api_served(tmp_path, plugins={"gate": gate}) as served:
        asked = asyncio.create_task(served.ask(f"{NAMESPACE}/topics"))
        await eventually(lambda: gate.waiting == 1)
        asked.cancel()
        await eventually(lambda: served.sample("http_requests_under_way") == 0)
        assert served.sample("http_requests_total", operation="listTopics", status="cut") == 1


async def test_what_is_under_way_ends_before_the_server_does(tmp_path: Path) -> None:
    gate = Waiting()
    async with api_served(tmp_path, plugins={"gate": gate}) as served:
        asked = asyncio.create_task(served.ask(f"{NAMESPACE}/topics"))
        await eventually(lambda: gate.waiting == 1)
        stopping = asyncio.create_task(served.broker.stop(60))
        admission = served.broker._http_servers._services.admission  # type: ignore[union-attr]
        await eventually(lambda: admission.draining)
        refused = await served.ask(f"{NAMESPACE}/topics")
        assert (refused.status, refused.json["cause"]) == (503, "UNAVAILABLE")
        assert (await served.ask("/-/ready")).json == {"status": "draining"}
        gate.opened.set()
        assert (await asked).status == 200
        await stopping
