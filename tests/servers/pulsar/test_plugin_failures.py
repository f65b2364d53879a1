"""Failing plugins as Pulsar clients see them: an error that names the plugin, and an unharmed broker."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import generate_latest

from broker_core import ListingRequest, TopicListingResult
from broker_core.errors import ListingFailed, ServerError, TooManyRequests
from broker_core.pipeline import PipelineOptions
from broker_core.plugins.call.circuit_breaker import THRESHOLD
from broker_core.servers.pulsar import PulsarOptions
from broker_core.settings import LimitsSettings, PulsarSettings
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

    limits = LimitsSettings(heap_permits=1_000_000, permit_timeout=0.02)
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
            limits=LimitsSettings(heap_permits=1_000_000, permit_timeout=AGES),
            tables={"p": {"deadline": 60}},
            options=PulsarOptions(PulsarSettings(keep_alive=AGES)),
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

    limits = LimitsSettings(heap_permits=1_000_000)
    plugin = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with serving(plugins=plugin, limits=limits) as s, await s.client() as client:
        held = await s.permits.heap.acquire(500_000)
        assert topics(await client.ask(NAMESPACE)) == [A]
        held.release()
        go_on.set()
        await tasks[0]
        assert "This request is over" in str(outcomes[0])
        assert isinstance(await asyncio.gather(tasks[1], return_exceptions=True), list)


class Broken(ListingFailed):
    """Neither its text nor its fields can be had."""

    def __init__(self) -> None:
        pass

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def _changed(**fields: object) -> BaseException:
    error = ListingFailed("text")
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def _deep() -> BaseException:
    error: Exception = ValueError("bottom")
    for _ in range(3000):
        error = ExceptionGroup("deep", [error])
    return error


#: Called with what the types would not let through.
failed: Any = ListingFailed
refused: Any = TooManyRequests
listed: Any = success

#: What a plugin does, and what the client is told of it.
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "code of a wrong type": (lambda: failed("m", code="MetadataError"), "failed: TypeError"),
    "code that is no number of the protocol": (lambda: failed("m", code=99), "failed: ValueError"),
    "message of a wrong type": (lambda: failed(KeyError("secret")), "failed: TypeError"),
    "reason of a wrong type": (lambda: refused("m", reason=[]), "failed: TypeError"),
    "code that is set": (lambda: _changed(code="MetadataError"), "failed: ListingFailed"),
    "message that is set": (lambda: _changed(message=None), "failed: ListingFailed"),
    "counts that is set": (lambda: _changed(counts=[]), "failed: ListingFailed"),
    "reason that is set": (lambda: _changed(reason={}), "failed: ListingFailed"),
    "no text": (Broken, "failed: Broken"),
    "megabytes": (lambda: failed("x" * 5_000_000), "failed: xxx"),
    "a lone surrogate": (lambda: failed("a\ud800b"), r"failed: a\\ud800b"),
    "control characters": (lambda: failed("\x1b[31m\0"), r"failed: \\x1b\[31m\\x00"),
    "a group": (
        lambda: BaseExceptionGroup("g", [SystemExit(1), KeyboardInterrupt()]),
        "failed: BaseExceptionGroup",
    ),
    "groups in groups": (_deep, "failed: ExceptionGroup"),
    "a generator that exits": (GeneratorExit, "failed: GeneratorExit"),
    "a list": (lambda: [A], "gave a wrong answer: it returned a list, .* `return TopicListingResult.success"),
    "a generator": (lambda: listed(name for name in [A]), "failed: TypeError"),
    "a set": (lambda: listed({A}), "failed: TypeError"),
    "None among the names": (lambda: listed([A, None]), "the name at position 1 is: leave it out"),
    "bytes among the names": (lambda: listed([A.encode()]), r"of type bytes: write name.decode\(\)"),
    "an answer that nobody made": (
        lambda: object.__new__(TopicListingResult),
        "gave a wrong answer: AttributeError",
    ),
    "an answer that it changes": (lambda: setattr(listed([A]), "topics", 5), "failed: AttributeError"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("sync", [True, False])
async def test_whatever_a_plugin_hands_over_ends_no_connection(wrong: str, sync: bool) -> None:
    make, told = WRONG[wrong]

    def answer() -> Any:
        made = make()
        if isinstance(made, BaseException):
            raise made
        return made

    async def later() -> Any:
        return answer()

    plugin = {"p": PluginOf(list_topics=answer if sync else later)}
    async with serving(MemoryLister(STORED), plugin) as s, await s.client() as client:
        for _ in range(2):
            with pytest.raises(Refused, match=rf"^MetadataError: plugin 'p' .*{told}"):
                await client.ask(NAMESPACE)
        await client.ping()
        json.dumps(s.dispatcher.describe())
        generate_latest(s.metrics.registry)
        assert s.permits.heap.acquired == 0
    tables = {"p": {"on_failure": "next"}}
    async with serving(MemoryLister(STORED), plugin, tables=tables) as s, await s.client() as client:
        assert topics(await client.ask(NAMESPACE)) == STORED


@pytest.mark.parametrize("hook", ["list_topics", "visible"])
async def test_a_hook_that_blocks_the_loop_beyond_its_deadline(hook: str) -> None:
    async def blocks() -> Any:
        time.sleep(0.12)  # noqa: ASYNC251 - it is what this is about
        return None

    plugin = {"p": PluginOf(**{hook: blocks})}
    late = r"MetadataError: plugin 'p' did not answer within 0.05 s, and held the event loop"
    for on_failure in ("error", "next"):
        tables = {"p": {"deadline": "50ms", "on_failure": on_failure}}
        async with serving(MemoryLister(STORED), plugin, tables=tables) as s, await s.client() as client:
            if hook == "list_topics" and on_failure == "next":
                assert topics(await client.ask(NAMESPACE)) == STORED
            else:
                with pytest.raises(Refused, match=late):
                    await client.ask(NAMESPACE)
            (call,) = s.dispatcher.describe()[0]["calls"].values()
            assert (call["loop"]["blocked"], call["failures"]) == (1, {"plugin_deadline": 1})
