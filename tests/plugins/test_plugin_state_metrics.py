"""Metrics of plugins: calls, breakers, time on the event loop."""

from __future__ import annotations

import pytest

from broker_core.plugins import PluginFailed
from broker_core.plugins.call import event_loop_time
from tests.support.clock import SetClock
from tests.support.plugin_chains import listed
from tests.support.plugins import PluginOf
from tests.support.scraped import scraped, shown, total


async def test_plugins_and_their_identity() -> None:
    def broken() -> None:
        raise ValueError("x")

    metrics, _, dispatcher = shown(good=PluginOf(list_topics=lambda: None), bad=PluginOf(list_topics=broken))
    for _ in range(7):
        assert isinstance((await listed(dispatcher))[0], PluginFailed)
    dispatcher.false_claim("good", 3, "plugin says that it filtered, and did not; the server filters")
    samples = scraped(metrics.registry)
    calls = "broker_core_listing_plugin_calls_total"
    assert samples[calls, "hook=list_topics,outcome=pass_through,plugin=good"] == 7
    assert samples[calls, "hook=list_topics,outcome=error,plugin=bad"] == 7
    assert samples["broker_core_listing_plugin_seconds_count", "hook=list_topics,plugin=bad"] == 5
    refused = dispatcher.describe()[1]["calls"]["list_topics"]["failures"]["plugin_breaker"]
    assert total(samples, calls) == total(samples, "broker_core_listing_plugin_seconds_count") + refused
    assert samples["broker_core_listing_plugin_breaker_state", "plugin=bad"] == 2
    assert samples["broker_core_listing_plugin_breaker_state", "plugin=good"] == 0
    assert samples["broker_core_listing_claim_mismatch_total", "plugin=good"] == 1
    assert samples["broker_core_listing_plugin_abandoned_calls", "plugin=good"] == 0
    assert samples["broker_core_listing_plugin_passed_over_total", "plugin=bad"] == 0
    await dispatcher.shutdown()


async def test_the_time_that_plugins_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SetClock()
    monkeypatch.setattr(event_loop_time, "_clock", clock)

    async def broker_core_list_topics() -> None:
        clock.now += 0.5  # as much as it computes or sleeps

    plugin = PluginOf(list_topics=broker_core_list_topics, visible=lambda: None)
    metrics, _, dispatcher = shown(p=plugin)
    blocked = "broker_core_listing_plugin_loop_blocked_total"
    seconds = "broker_core_listing_plugin_loop_seconds_total"
    before = scraped(metrics.registry)
    for hook in ("list_topics", "visible"):
        assert [before[name, f"hook={hook},plugin=p"] for name in (blocked, seconds)] == [0, 0]
    await listed(dispatcher)
    after = scraped(metrics.registry)
    assert after[blocked, "hook=list_topics,plugin=p"] == 1
    assert after[seconds, "hook=list_topics,plugin=p"] == 0.5
    assert after[blocked, "hook=visible,plugin=p"] == 0
    await dispatcher.shutdown()
