"""Observers: called one after the other, never waited for, with a bounded queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker_core.plugin_api.hookspecs import ListingOutcome
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.call.plugin_runner import PluginRunner
from broker_core.plugins.hooks.observers import BACKLOG, Observer
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf, asked, loaded

OUTCOME = ListingOutcome("served", "catalog", 3, True, "00000000", 0.001)


def observer(function: Callable[..., Any], **table: object) -> Observer:
    plugin = loaded(PluginOf(listing_served=function), **table)
    return Observer(HookCaller(plugin, "broker_core_listing_served", PluginRunner("p")))


@pytest.mark.parametrize("is_async", [False, True])
async def test_it_sees_each_outcome_in_order(is_async: bool) -> None:
    seen: list[tuple[str, int]] = []

    def plain(request: ListingRequest, outcome: ListingOutcome) -> None:
        seen.append((str(request.namespace), outcome.topics))

    async def later(request: ListingRequest, outcome: ListingOutcome) -> None:
        plain(request, outcome)

    told = observer(later if is_async else plain)
    for number in range(3):
        told.enqueue(asked(f"a/n{number}"), ListingOutcome("served", None, number, True, None, 0.1))
    await eventually(lambda: seen == [("a/n0", 0), ("a/n1", 1), ("a/n2", 2)])
    told.enqueue(asked("a/later"), OUTCOME)
    await eventually(lambda: told.caller.statistics.answers == {"observed": 4})
    assert len(seen) == 4


async def test_its_failures_reach_nobody() -> None:
    def function(outcome: ListingOutcome) -> None:
        raise ValueError("broken")

    told = observer(function)
    for _ in range(7):
        told.enqueue(asked(), OUTCOME)
    await eventually(lambda: told.caller.statistics.answers.total() == 7)
    assert told.caller.statistics.failures == {"plugin_error": 5, "plugin_breaker": 2}


async def test_there_are_no_permits_any_more() -> None:
    async def reserve(size: int) -> None:
        raise AssertionError("the request has given them back")

    async def function(request: ListingRequest) -> None:
        await request.reserve(5)

    told = observer(function)
    told.enqueue(asked(reserve_bytes=reserve), OUTCOME)
    await eventually(lambda: told.caller.statistics.answers == {"observed": 1})


async def test_a_slow_one_loses_outcomes_rather_than_memory() -> None:
    go_on = asyncio.Event()

    async def function(request: ListingRequest) -> None:
        await go_on.wait()

    told = observer(function)
    for _ in range(BACKLOG + 10):
        told.enqueue(asked(), OUTCOME)
    assert told.dropped == 10
    go_on.set()
    await eventually(lambda: told.caller.statistics.answers == {"observed": BACKLOG})


async def test_at_the_end_it_gets_what_is_left() -> None:
    seen: list[ListingOutcome] = []

    async def quick(outcome: ListingOutcome) -> None:
        seen.append(outcome)

    async def stuck() -> None:
        await asyncio.Event().wait()

    told = observer(quick)
    told.enqueue(asked(), OUTCOME)
    await told.close(5)
    assert seen == [OUTCOME]
    hanging = observer(stuck)
    hanging.enqueue(asked(), OUTCOME)
    await hanging.close(0.01)
    await observer(quick).close(1)  # that never saw anything
