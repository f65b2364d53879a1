"""Plugins that fail, as clients of the protocol see it: an error that names the plugin, and the broker unharmed."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from broker_core import ListingRequest
from broker_core.errors import ListingFailed, ServerError
from broker_core.permits import PermitLimits
from broker_core.pipeline import PipelineOptions
from broker_core.plugins.breaker import THRESHOLD
from broker_core.pulsar import PulsarOptions
from tests.support.clock import AGES, breakers_stay_open, time_passes
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.plugin_answers import (
    NAMESPACE,
    STORED,
    A,
    answering,
    asked,
    raising,
    success,
    topics,
)
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import serving
from tests.support.raw_client import RawClient, Refused

FAILURES: list[BaseException] = [
    RuntimeError("secret"),
    KeyError("x"),
    TimeoutError(),
    StopIteration(),
    asyncio.CancelledError(),
    SystemExit(1),
    KeyboardInterrupt(),
    MemoryError(),
    AssertionError(),
]


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("sync", [True, False])
async def test_a_plugin_that_raises(error: BaseException, sync: bool) -> None:
    def broker_core_list_topics() -> Any:
        raise error

    plugin = PluginOf(list_topics=broker_core_list_topics) if sync else answering(raising(error))
    with pytest.raises(Refused, match=r"MetadataError: plugin 'p' failed: ") as raised:
        await asked({"p": plugin})
    assert "secret" not in raised.value.message
    tables = {"p": {"on_failure": "next"}}
    assert topics(await asked({"p": plugin}, tables=tables)) == STORED


async def test_a_plugin_may_say_itself_what_a_client_is_told() -> None:
    error = ListingFailed("no such tenant", code=ServerError.AuthorizationError)
    with pytest.raises(Refused, match=r"AuthorizationError: plugin 'p' failed: no such tenant"):
        await asked({"p": answering(raising(error))})


async def test_a_hanging_plugin_meets_its_deadline() -> None:
    released = threading.Event()
    waits = asyncio.Event()

    async def broker_core_list_topics() -> Any:
        await waits.wait()

    hanging = {
        "async": PluginOf(list_topics=broker_core_list_topics),
        "sync": PluginOf(list_topics=lambda: released.wait()),  # noqa: PLW0108  # a method cannot be marked
    }
    try:
        for name, plugin in hanging.items():
            tables: dict[str, dict[str, object]] = {name: {"deadline": 0.02}}
            with pytest.raises(
                Refused, match=rf"MetadataError: plugin '{name}' did not answer within 0.02 s"
            ):
                await asked({name: plugin}, tables=tables)
            tables[name]["on_failure"] = "next"
            assert topics(await asked({name: plugin}, tables=tables)) == STORED
    finally:
        released.set()


async def test_the_breaker_opens_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    breakers_stay_open(monkeypatch)
    calls = 0

    def fail(_: ListingRequest) -> Any:
        nonlocal calls
        calls += 1
        raise RuntimeError

    plugin = {"p": answering(fail)}
    async with serving(MemoryLister(STORED), plugin) as s, await s.client() as client:
        for _ in range(5):
            with pytest.raises(Refused, match=r"failed: RuntimeError"):
                await client.ask(NAMESPACE)
        with pytest.raises(
            Refused, match=r"MetadataError: plugin 'p' is not asked for now: it failed 5 times"
        ):
            await client.ask(NAMESPACE)
        assert calls == 5


async def test_bad_topics_open_the_breaker_too(monkeypatch: pytest.MonkeyPatch) -> None:
    breakers_stay_open(monkeypatch)
    async with (
        serving(MemoryLister(STORED), {"p": answering(success(["bad"]))}) as s,
        await s.client() as client,
    ):
        for _ in range(5):
            with pytest.raises(Refused, match=r"Invalid topic name"):
                await client.ask(NAMESPACE)
        with pytest.raises(Refused, match=r"is not asked for now"):
            await client.ask(NAMESPACE)


async def test_a_refused_reservation_is_the_brokers_answer_and_no_failure_of_the_plugin() -> None:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        await request.reserve(900_000)
        return success([A])

    limits = PermitLimits(heap=1_000_000, timeout=0.02)
    plugin = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with serving(plugins=plugin, limits=limits) as s, await s.client() as client:
        held = await s.permits.heap.acquire(500_000)
        for _ in range(6):
            with pytest.raises(Refused, match=r"^TooManyRequests: Failed due to heap memory limit exceeded$"):
                await client.ask(NAMESPACE)
        held.release()
        assert topics(await client.ask(NAMESPACE)) == [A]


@pytest.mark.parametrize("size", [float("nan"), 1e6, "x", -1, None], ids=repr)
async def test_a_wrong_reservation_is_the_plugins_failure(size: Any) -> None:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        await request.reserve(size)

    plugin = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with serving(MemoryLister(STORED), plugin) as s, await s.client() as client:
        for _ in range(THRESHOLD):
            with pytest.raises(Refused, match=r"^MetadataError: plugin 'p' failed: (Type|Value)Error$"):
                await client.ask(NAMESPACE)
        assert s.dispatcher.describe()[0]["calls"]["list_topics"]["breaker"] == "open"
        assert s.permits.heap.acquired == 0
    tables = {"p": {"on_failure": "next"}}
    async with serving(MemoryLister(STORED), plugin, tables=tables) as s, await s.client() as client:
        assert topics(await client.ask(NAMESPACE)) == STORED


async def test_waiting_for_permits_is_not_the_plugins_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        await request.reserve(900_000)
        return success([A])

    plugin = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with (
        serving(
            plugins=plugin,
            limits=PermitLimits(heap=1_000_000, timeout=AGES),
            tables={"p": {"deadline": 60}},
            options=PulsarOptions(keep_alive=AGES),
            pipeline_options=PipelineOptions(time_budget=AGES),
        ) as s,
        await s.client() as client,
        await s.client() as other,
    ):
        held = await s.permits.heap.acquire(500_000)
        request_id, frame = client.question(NAMESPACE)
        await client.send(frame)
        await eventually(lambda: s.permits.heap.queue_size == 1)
        time_passes(monkeypatch, 61)
        await other.ping()
        held.release()
        assert topics(RawClient.answer(await client.receive(), request_id)) == [A]


async def test_what_a_plugin_leaves_behind_holds_nothing() -> None:
    """A task of a plugin that goes on after its answer cannot reserve any more."""
    outcomes: list[BaseException | None] = []
    tasks: list[asyncio.Task[None]] = []
    go_on = asyncio.Event()

    async def late(request: ListingRequest) -> None:
        await go_on.wait()
        try:
            await request.reserve(500_000)
        except ListingFailed as error:
            outcomes.append(error)

    async def broker_core_list_topics(request: ListingRequest) -> Any:
        tasks.append(asyncio.create_task(late(request)))
        tasks.append(asyncio.create_task(request.reserve(10**12)))
        return success([A])

    limits = PermitLimits(heap=1_000_000)
    plugin = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with serving(plugins=plugin, limits=limits) as s, await s.client() as client:
        held = await s.permits.heap.acquire(500_000)
        assert topics(await client.ask(NAMESPACE)) == [A]
        held.release()
        go_on.set()
        await tasks[0]
        assert "This request is over" in str(outcomes[0])
        assert isinstance(await asyncio.gather(tasks[1], return_exceptions=True), list)
