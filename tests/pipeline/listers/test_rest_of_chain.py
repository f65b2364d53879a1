"""The rest of the chain: its listers, its failures, its counts, and its dependencies."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from broker_core import Asker, Details, ListingRequest, RestAnswer, Selection, TopicListingResult
from broker_core.errors import ListingFailed, ServerError, TooManyRequests
from broker_core.listing.listing import data_of
from broker_core.names import NamespaceName
from broker_core.pipeline import Trace
from broker_core.plugins import RestFailed
from broker_core.settings import LimitsSettings
from tests.support.chain_plugins import A, B, C, asks, fails, lists, lists_nothing, success
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, NAMES, made, names, request
from tests.support.plugins import PluginOf


async def test_behind_a_plugin_are_those_after_it_and_the_default_lister() -> None:
    seen: list[RestAnswer] = []
    plugins = {"front": lists_nothing(), "a": asks(seen=seen), "b": lists_nothing()}
    async with made(MemoryLister(FEW, at_once=False), plugins) as m:
        assert sorted(names(await m.ask())) == sorted(FEW)
        (answer,) = seen
        assert (answer.lister, answer.version, answer.filtered) == ("catalog", "1", False)
    seen.clear()
    async with made(MemoryLister(FEW), {"a": asks(seen=seen), "b": lists(A, B, version=7)}) as m:
        assert names(await m.ask()) == [A, B]
        assert (seen[0].lister, seen[0].version, m.lister.asked) == ("b", 7, [])


async def test_it_is_asked_without_the_hash_of_the_client_and_with_another_pattern() -> None:
    seen: list[RestAnswer] = []
    plugins = {"a": asks(pattern="t/n/a", properties={"x": "y"}, seen=seen)}
    async with made(MemoryLister([A, B], at_once=False), plugins) as m:
        answer = await m.ask(topics_hash="00000000", properties={"k": "v"})
        assert names(answer) == [A]
        (asked,) = m.lister.asked
        assert (asked.topics_hash, asked.topics_pattern, asked.properties) == (None, "t/n/a", {"x": "y"})
        assert seen[0].filtered
        assert names(await m.ask(pattern="t/n/b")) == []  # of what the plugin lists


async def test_the_pattern_of_the_client_is_applied_behind_and_not_again() -> None:
    seen: list[RestAnswer] = []
    async with made(plugins={"a": asks(seen=seen)}) as m:
        answer = await m.ask(pattern="t/n/3-.*")
        assert seen[0].filtered
        assert seen[0].selection.pattern == "t/n/3-.*"
        assert answer.plan == "lister"
        assert len(names(answer)) == sum("/3-" in name for name in NAMES)


async def test_plugins_in_a_row_ask_what_is_behind_each() -> None:
    plugins = {name: asks() for name in ("a", "b", "c", "d", "e", "f")}
    trace = Trace()
    async with made(MemoryLister(FEW, at_once=False), plugins) as m:
        assert sorted(names(await m.pipeline.answer(request(), trace))) == sorted(FEW)
        assert len(m.lister.asked) == 1
    inner: Any = trace
    for plugin in plugins:
        (inner,) = inner.rest
        assert (inner.plugin, inner.listed) == (plugin, len(FEW))
    assert inner.rest == []


async def test_calls_at_once_are_safe_and_a_fifth_is_the_plugins_failure() -> None:
    async def four(request: ListingRequest) -> TopicListingResult:
        answers = await asyncio.gather(*(request.rest(pattern=f"t/n/{n}-.*") for n in range(4)))
        return success([name for answer in answers for name in answer.selection.names.to_pylist()])

    async def five(request: ListingRequest) -> None:
        for _ in range(5):
            await request.rest()

    async with made(plugins={"four": PluginOf(list_topics=four)}) as m:
        assert len(names(await m.ask())) == sum(name.split("/")[-1][0] in "0123" for name in NAMES)
    async with made(plugins={"five": PluginOf(list_topics=five)}) as m:
        with pytest.raises(ListingFailed, match="plugin 'five' failed: RuntimeError"):
            await m.ask()
        assert m.pipeline.dispatcher.describe()[0]["calls"]["list_topics"]["failures"] == {"plugin_error": 1}


@pytest.mark.parametrize("on_failure", ["error", "next", "stale"])
@pytest.mark.parametrize(
    "behind",
    [fails(OSError("away")), fails(ListingFailed("not now", code=ServerError.ServiceNotReady)), None],
)
async def test_a_failure_behind_is_final_and_not_that_of_the_plugin_that_asks(
    on_failure: str, behind: PluginOf | None
) -> None:
    plugins = {"a": asks()} | ({} if behind is None else {"b": behind})
    lister = MemoryLister(FEW, at_once=False)
    async with made(lister, plugins, tables={"a": {"on_failure": on_failure}}) as m:
        if behind is None:
            lister.error = TooManyRequests("no memory", reason="snapshot_memory")
        for _ in range(7):
            trace = Trace()
            with pytest.raises(ListingFailed) as failed:
                await m.pipeline.answer(request(), trace)
            told = "no memory" if behind is None else "plugin 'b'"
            assert told in failed.value.message
            if failed.value.plugin == "b":
                assert isinstance(failed.value, RestFailed)
                assert [step.plugin for step in trace.chain] == ["a", "b"]
        calls = m.pipeline.dispatcher.describe()[0]["calls"]["list_topics"]
        assert (calls["failures"], calls["breaker"]) == ({}, "closed")
        assert len(m.lister.asked) == (7 if behind is None else 0)


async def test_a_plugin_may_catch_it() -> None:
    async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        try:
            return success((await request.rest()).selection)
        except ListingFailed:
            return success([C])

    plugins = {"a": PluginOf(list_topics=broker_core_list_topics), "b": fails(OSError())}
    async with made(plugins=plugins) as m:
        assert names(await m.ask()) == [C]


async def test_a_group_of_what_is_behind_is_final_too() -> None:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(request.rest())

    plugins = {"a": PluginOf(list_topics=broker_core_list_topics), "b": fails(OSError())}
    async with made(plugins=plugins, tables={"a": {"on_failure": "next"}}) as m:
        with pytest.raises(RestFailed, match="plugin 'b' failed: OSError"):
            await m.ask()


async def test_what_a_plugin_makes_of_it_is_its_own_failure() -> None:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        try:
            await request.rest()
        except ListingFailed as error:
            raise KeyError from error

    plugins = {"a": PluginOf(list_topics=broker_core_list_topics), "b": fails(OSError())}
    async with made(plugins=plugins) as m:
        with pytest.raises(ListingFailed, match="plugin 'a' failed: KeyError"):
            await m.ask()


async def test_the_time_of_what_is_behind_is_not_the_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    lister = MemoryLister(FEW, at_once=False)
    lister.gate.clear()
    async with made(lister, {"a": asks()}) as m:
        asking = asyncio.create_task(m.ask())
        await eventually(lambda: lister.asked)
        time_passes(monkeypatch, 100)
        lister.gate.set()
        assert len(names(await asking)) == len(FEW)
        assert m.pipeline.dispatcher.describe()[0]["calls"]["list_topics"]["p99_ms"] < 50_000


async def test_a_client_that_goes_ends_what_is_behind() -> None:
    lister = MemoryLister(FEW, at_once=False)
    lister.gate.clear()
    async with made(lister, {"a": asks()}) as m:
        asking = asyncio.create_task(m.ask())
        await eventually(lambda: lister.asked)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await eventually(lambda: m.pipeline.dispatcher.abandoned_calls() == {"a": 0})


async def test_what_a_plugin_has_begun_and_not_awaited_ends_with_its_call() -> None:
    lister = MemoryLister(FEW, at_once=False)
    lister.gate.clear()
    requests: list[ListingRequest] = []
    begun: list[asyncio.Task[RestAnswer]] = []

    async def leaves_it(request: ListingRequest) -> TopicListingResult:
        requests.append(request)
        begun.append(asyncio.create_task(request.rest()))
        await eventually(lambda: lister.asked)
        return success([A])

    async with made(lister, {"a": PluginOf(list_topics=leaves_it)}) as m:
        assert names(await m.ask()) == [A]
        await eventually(begun[0].cancelled)
        with pytest.raises(RuntimeError, match="came too late"):
            await requests[0].rest()


async def test_misuse_is_told_to_the_author() -> None:
    def plain(request: ListingRequest) -> Any:
        return request.rest()

    async def visible(request: ListingRequest, topics: Any) -> Any:
        await request.rest()

    for plugin, told in (
        (PluginOf(list_topics=plain), "is for async hooks: write `async def broker_core_list_topics`"),
        (PluginOf(visible=visible), r"request.rest\(\) is for broker_core_list_topics only"),
    ):
        with capture_logs() as logs:
            async with made(plugins={"p": plugin}) as m:
                with pytest.raises(ListingFailed, match="failed: RuntimeError"):
                    await m.ask()
        assert [each for each in logs if told.replace("\\", "") in each["error"]]


async def test_a_plain_function_that_returns_a_coroutine_may_ask() -> None:
    def starts(request: ListingRequest) -> Any:
        return later(request)

    async def later(request: ListingRequest) -> TopicListingResult:
        return success((await request.rest()).selection)

    async with made(MemoryLister(FEW, at_once=False), {"p": PluginOf(list_topics=starts)}) as m:
        assert sorted(names(await m.ask())) == sorted(FEW)


async def test_masks_come_once_and_last() -> None:
    seen: list[RestAnswer] = []
    masked = 0

    async def visible(topics: Any) -> Any:
        nonlocal masked
        masked += 1
        return np.arange(len(topics)) % 2 == 0

    plugins = {"m": PluginOf(visible=visible), "a": asks(seen=seen), "b": asks()}
    async with made(MemoryLister(FEW, at_once=False), plugins) as m:
        assert len(names(await m.ask())) == len(FEW) // 2
        assert (masked, len(seen[0].selection)) == (1, len(FEW))


async def test_details_behind_are_of_the_topics_that_are_left() -> None:
    seen: list[RestAnswer] = []

    async def behind(request: ListingRequest) -> TopicListingResult:
        return success([A, B], details=Details.of([A, B], properties=[{"a": "1"}, {}]))

    async def front(request: ListingRequest) -> TopicListingResult:
        answer = await request.rest()
        seen.append(answer)
        return success(answer.selection, filtered=answer.filtered, details=answer.details)

    plugins = {"a": PluginOf(list_topics=front), "b": PluginOf(list_topics=behind)}
    async with made(plugins=plugins) as m:
        assert names(await m.ask(pattern="t/n/a", wants={"properties"})) == [A]
        assert names(await m.ask(wants={"properties"})) == [A, B]
    told = [answer.details.topics.to_pylist() for answer in seen if answer.details is not None]
    assert told == [[A], [A, B]]


async def test_a_fifth_call_is_a_failure_of_the_plugin_though_it_catches_it() -> None:
    async def asking(request: ListingRequest) -> TopicListingResult | None:
        answer = await request.rest()
        for _ in range(4):
            with suppress(RuntimeError):
                answer = await request.rest()
        return None if passes else success(answer.selection)

    passes = False
    for passes in (False, True):  # noqa: B007  # asking() reads it
        async with made(plugins={"a": PluginOf(list_topics=asking), "b": lists(A)}) as m:
            with pytest.raises(ListingFailed, match="more than 4 times for one request"):
                await m.ask()


async def test_plugins_in_a_row_do_not_multiply_what_one_client_asks() -> None:
    asked = 0

    async def four(request: ListingRequest) -> TopicListingResult:
        answers = [await request.rest() for _ in range(4)]
        return success(answers[0].selection)

    async def last(request: ListingRequest) -> TopicListingResult:
        nonlocal asked
        asked += 1
        return success([A])

    plugins: dict[str, object] = {f"p{number}": PluginOf(list_topics=four) for number in range(5)}
    async with made(plugins=plugins | {"z": PluginOf(list_topics=last)}) as m:
        for _ in range(7):  # no plugin's breaker opens for what others ask
            with pytest.raises(ListingFailed, match="more than 64 times by all plugins"):
                await m.ask()
        assert asked <= 7 * 64
    two = {"p": PluginOf(list_topics=four), "q": PluginOf(list_topics=four), "z": PluginOf(list_topics=last)}
    async with made(plugins=two) as m:
        assert names(await m.ask()) == [A]


async def test_a_cache_by_key_misses_after_topics_changed() -> None:
    kept: dict[object, Selection] = {}

    async def caching(request: ListingRequest) -> TopicListingResult:
        key = request.key(pattern=None)
        if key not in kept:
            kept[key] = (await request.rest(pattern=None)).selection
        return success(kept[key])

    topics = [A]

    async def behind(request: ListingRequest) -> TopicListingResult:
        return success(topics)

    plugins = {"a": PluginOf(list_topics=caching), "b": PluginOf(list_topics=behind, depends_on=lambda: ())}
    async with made(plugins=plugins) as m:
        assert names(await m.ask()) == [A]
        topics = [B]
        assert names(await m.ask()) == [A]
        m.pipeline.changes.announce(NamespaceName.parse("t/other"))
        assert names(await m.ask()) == [A]
        m.pipeline.changes.announce(NamespaceName.parse("t/n"))
        assert names(await m.ask()) == [B]
        topics = [C]
        m.pipeline.changes.announce(None)
        assert names(await m.ask()) == [C]
        kept.clear()


# -- memory


async def test_what_is_behind_is_counted_for_each_answer_and_moves_to_the_snapshots_when_it_is_kept() -> None:
    kept: list[Any] = []
    during: list[int] = []

    async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        one = await request.rest(pattern="t/n/1-.*")
        other = await request.rest(pattern="t/n/2-.*")
        during.append(m.permits.heap.acquired)
        kept.append(one.selection)
        return success([A]) if other.filtered else success([B])

    plugins = {"cache": PluginOf(list_topics=broker_core_list_topics), "b": lists(*NAMES)}
    async with made(plugins=plugins, limits=LimitsSettings(heap_permits=10**9)) as m:
        assert names(await m.ask()) == [A]
        whole = data_of(kept[0].listing).column_bytes
        assert during[0] >= 2 * whole
        await eventually(lambda: whole <= m.permits.snapshots.acquired <= 1.2 * whole)
        assert m.permits.heap.acquired == 0
        kept.clear()
        gc.collect()
        await eventually(lambda: m.permits.snapshots.acquired == 0)


async def test_what_is_kept_beyond_the_snapshots_keeps_no_other_namespace_out() -> None:
    """A kept answer stays in the heap, which has room for less; a new namespace is not made to wait for what never
    comes back.
    """
    kept: list[Any] = []

    async def keeping(request: ListingRequest) -> TopicListingResult:
        answer = await request.rest()
        if request.namespace.namespace == "n":
            kept.append(answer.selection)
        return success(answer.selection)

    async def behind(request: ListingRequest) -> TopicListingResult:
        names = NAMES if request.namespace.namespace == "n" else NAMES[:50]
        return success([f"persistent://{request.namespace}/{name.rpartition('/')[2]}" for name in names])

    plugins = {"cache": PluginOf(list_topics=keeping), "b": PluginOf(list_topics=behind)}
    async with made(plugins=plugins, limits=LimitsSettings(heap_permits=10**9)) as m:
        await m.ask()
        peak = m.pipeline.estimates.everywhere.peak
        assert peak is not None
        assert kept
    kept.clear()
    with capture_logs() as logs:
        limits = LimitsSettings(heap_permits=peak + peak // 20, snapshots=1000, permit_timeout=AGES)
        async with made(plugins=plugins, limits=limits) as m:
            assert len(names(await m.ask())) == len(NAMES)
            assert 0 < m.permits.heap.acquired < m.permits.heap.maximum // 2
            assert peak > m.permits.heap.available
            for namespace in ("other", "third"):
                asked = replace(request(), namespace=NamespaceName.parse(f"t/{namespace}"))
                assert len(names(await m.pipeline.answer(asked))) == 50
            kept.clear()
            gc.collect()
            await eventually(lambda: m.permits.heap.acquired == 0)
    said = [line for line in logs if "does not fit into limits.snapshots" in line["event"]]
    assert len(said) == 1


async def test_memory_that_cannot_be_had_behind_is_final() -> None:
    async with made(
        plugins={"a": asks(), "b": lists(*NAMES)},
        limits=LimitsSettings(heap_permits=100_000, permit_timeout=0.05),
        tables={"a": {"on_failure": "next"}},
    ) as m:
        other = m.permits.heap.try_acquire(50_000)
        assert other is not None
        with pytest.raises(TooManyRequests):
            await m.ask()
        other.release()


# -- what the answer depends on


Asks = Callable[..., Awaitable[list[str]]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ["pattern", "principal"]),
        ({"pattern": None}, ["principal"]),
        ({"pattern": "t/n/.*"}, ["pattern", "principal"]),
    ],
)
async def test_a_plugin_depends_on_what_everything_behind_depends_on(
    given: dict[str, Any], words: list[str]
) -> None:
    plugins = {"a": asks(**given), "b": lists(A, on=("principal",))}
    async with made(plugins=plugins) as m:
        assert m.pipeline.dispatcher.describe()[0]["depends_on"] == []
        names(await m.ask())
        assert m.pipeline.dispatcher.describe()[0]["depends_on"] == words


async def test_a_last_answer_made_of_the_rest_is_of_who_asked() -> None:
    away = False

    async def of_role(request: ListingRequest) -> TopicListingResult:
        return success([A] if request.asker.role == "me" else [B])

    async def asks_or_fails(request: ListingRequest) -> TopicListingResult:
        if away:
            raise OSError
        return success((await request.rest()).selection)

    plugins = {
        "a": PluginOf(list_topics=asks_or_fails, depends_on=lambda: ()),
        "b": PluginOf(list_topics=of_role, depends_on=lambda: {"principal"}),
    }
    async with made(plugins=plugins, tables={"a": {"on_failure": "stale"}}) as m:
        assert names(await m.ask(asker=Asker(role="me"))) == [A]
        away = True
        with pytest.raises(ListingFailed):
            await m.ask(asker=Asker(role="you"))
        assert names(await m.ask(asker=Asker(role="me"))) == [A]
