"""The plugins of one broker: chains by namespace, observers, startup and shutdown, counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from broker_core import ListingRequest, NamespaceName, TopicListingResult
from broker_core.plugin_api.hookspecs import ListingOutcome
from broker_core.plugins import (
    PluginLoadError,
)
from tests.support.eventually import eventually
from tests.support.plugin_chains import SUCCESS, TOPICS, answers, dispatcher, lists, masks
from tests.support.plugins import PluginOf, asked


async def test_without_plugins_nothing_is_asked() -> None:
    chain = dispatcher({})
    assert (chain.has_gates, chain.has_observers) == (False, False)
    assert await answers(chain) == []
    assert await chain.mask_hook.visible(asked(), TOPICS) is None
    assert not chain.lists(asked().namespace)
    assert not chain.masks(asked().namespace)
    await chain.startup()
    await chain.shutdown()


async def test_plugins_are_asked_about_their_namespaces_only() -> None:
    nothing = TopicListingResult.success([])
    chain = dispatcher(
        {"a": lists(nothing), "b": lists(nothing), "m": masks(pa.array([True] * 3))},
        {"a": {"namespaces": ["globex/*"]}, "m": {"namespaces": ["globex/*"]}},
    )
    assert await answers(chain, asked("acme/x")) == [("a", "not_asked"), ("b", "success")]
    assert await answers(chain, asked("globex/x")) == [("a", "success"), ("b", "not_asked")]
    assert not chain.masks(NamespaceName("acme", "x"))
    assert chain.masks(NamespaceName("globex", "x"))
    assert await chain.mask_hook.visible(asked("acme/x"), TOPICS) is None
    only = dispatcher({"a": lists(nothing)}, {"a": {"namespaces": ["globex/*"]}})
    assert (only.lists(NamespaceName("acme", "x")), only.lists(NamespaceName("globex", "x"))) == (False, True)


async def test_what_answers_depend_on() -> None:
    def plugin(**hooks: Callable[..., Any]) -> PluginOf:
        return PluginOf(**hooks)

    def nothing(request: object) -> None: ...

    chain = dispatcher(
        {
            "a": plugin(list_topics=nothing, depends_on=lambda: {"pattern"}),
            "b": plugin(visible=nothing, depends_on=lambda: {"principal"}),
            "c": plugin(shutdown=lambda: None),  # neither lists nor masks
            "d": plugin(list_topics=nothing),
        },
        {"d": {"namespaces": ["globex/*"]}},
    )
    assert chain.lister_hook.depends_on(NamespaceName("acme", "x"), 0) == {"pattern"}
    assert chain.lister_hook.depends_on(NamespaceName("acme", "x"), 1) == frozenset()
    assert chain.mask_hook.depends_on(NamespaceName("acme", "x")) == {"principal"}
    assert chain.lister_hook.depends_on(NamespaceName("globex", "x"), 1) == {
        "pattern",
        "properties",
        "principal",
        "client",
        "address",
    }


async def test_observers_see_the_namespaces_of_theirs() -> None:
    seen: list[str] = []

    async def served(request: ListingRequest, outcome: ListingOutcome) -> None:
        seen.append(str(request.namespace))

    chain = dispatcher({"a": PluginOf(listing_served=served)}, {"a": {"namespaces": ["acme/*"]}})
    assert chain.has_observers
    outcome = ListingOutcome("served", "catalog", 1, False, "00000000", 0.1)
    chain.observers.enqueue(asked("globex/x"), outcome)
    chain.observers.enqueue(asked("acme/x"), outcome)
    await eventually(lambda: seen == ["acme/x"])
    await chain.shutdown()


async def test_a_false_claim_is_logged_once_and_counted() -> None:
    chain = dispatcher({"a": lists(SUCCESS)})
    with capture_logs() as logs:
        for _ in range(3):
            chain.false_claim("a", 7, "plugin says that it filtered, and did not; the server filters")
    assert len(logs) == 1
    assert chain.claim_mismatches() == {"a": 3}
    with capture_logs() as logs:
        for _ in range(2):
            chain.false_claim("a", 7, "plugin gave a wrong topics hash; the server computes it")
    assert [entry["event"] for entry in logs] == ["plugin gave a wrong topics hash; the server computes it"]
    assert chain.claim_mismatches() == {"a": 5}
    assert chain.describe()[0]["claim_mismatches"] == 5


async def test_start_and_end_in_order() -> None:
    seen: list[str] = []

    def plugin(name: str) -> PluginOf:
        async def startup(broker: object) -> None:
            seen.append(f"start {name} {broker}")

        return PluginOf(startup=startup, shutdown=lambda: seen.append(f"end {name}"))

    chain = dispatcher({"a": plugin("a"), "b": plugin("b")})
    await chain.startup(lambda name: f"broker of {name}")
    await chain.shutdown()
    await chain.shutdown()
    assert seen == ["start a broker of a", "start b broker of b", "end b", "end a"]


async def test_a_failed_start_shuts_down_what_was_started() -> None:
    seen: list[str] = []

    def fail() -> None:
        raise OSError("no database")

    chain = dispatcher(
        {
            "a": PluginOf(shutdown=lambda: seen.append("end a")),
            "b": PluginOf(startup=fail, shutdown=lambda: seen.append("end b")),
            "c": PluginOf(startup=lambda: seen.append("start c"), shutdown=lambda: seen.append("end c")),
        }
    )
    with pytest.raises(PluginLoadError, match="plugin 'b' did not start: OSError: no database"):
        await chain.startup()
    assert seen == ["end a"]


async def test_warnings_are_logged_at_start() -> None:
    with capture_logs() as logs:
        await dispatcher({"a": object()}).startup()
    assert [entry["event"] for entry in logs] == ["plugin 'a' implements no hook"]


async def test_calls_are_told_and_abandoned_ones_are_counted() -> None:
    end = asyncio.Event()
    calls: list[tuple[str, str, str]] = []

    async def stubborn() -> None:
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                pass

    chain = dispatcher(
        {"a": PluginOf(list_topics=stubborn)},
        {"a": {"deadline": 0.01, "on_failure": "next"}},
        on_call=lambda plugin, hook, answer, seconds: calls.append((plugin, hook, answer)),
    )
    assert await answers(chain) == [("a", "error")]
    assert chain.abandoned_calls() == {"a": 1}
    assert calls == [("a", "list_topics", "error")]
    described = chain.describe()[0]
    assert described["threads"] == {"busy": 0, "waiting": 0}
    assert described["abandoned_calls"] == 1
    end.set()
    await eventually(lambda: chain.abandoned_calls() == {"a": 0})
