"""The metrics: their names are a contract with dashboards, and their identities hold."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from broker_core import hookimpl
from broker_core.logs import dropped_lines
from broker_core.memory.permits import PermitLimits, Permits, PermitTimeout
from broker_core.metrics.labels import CALL_OUTCOMES, CLOSURES, LISTINGS, REFUSALS
from broker_core.metrics.metrics import Buckets, Metrics
from broker_core.plugins import Dispatcher, PluginFailed, PluginRegistry
from tests.support.plugins import PluginOf, asked

UPSTREAM = {
    f"broker_core_topic_list_{kind}_{name}"
    for kind in ("heap", "direct")
    for name in (
        "memory_used_bytes",
        "memory_limit_bytes",
        "queue_size",
        "queue_max_size",
        "wait_time_seconds",
        "timeout",
    )
}
OURS = {
    "broker_core_accept_pauses",
    "broker_core_build_info",
    "broker_core_connections",
    "broker_core_connections_closed",
    "broker_core_connections_refused",
    "broker_core_ignored_properties",
    "broker_core_listing_claim_mismatch",
    "broker_core_listing_errors_sent",
    "broker_core_listing_names",
    "broker_core_listing_plugin_abandoned_calls",
    "broker_core_listing_plugin_breaker_state",
    "broker_core_listing_plugin_calls",
    "broker_core_listing_plugin_dropped_outcomes",
    "broker_core_listing_plugin_loop_blocked",
    "broker_core_listing_plugin_loop_seconds",
    "broker_core_listing_plugin_passed_over",
    "broker_core_listing_plugin_seconds",
    "broker_core_listing_plugin_stale",
    "broker_core_listing_plugin_stale_age_seconds",
    "broker_core_listing_rejected",
    "broker_core_listing_requests",
    "broker_core_listing_seconds",
    "broker_core_log_dropped",
    "broker_core_lookups_in_flight",
    "broker_core_snapshots_memory_limit_bytes",
    "broker_core_snapshots_memory_used_bytes",
}


@dataclass
class Slots:
    taken: int = 2


@dataclass
class Server:
    connections: int = 3
    slots: Slots = field(default_factory=Slots)


def scraped(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Every sample by name and labels, as a scraper reads the text."""
    text = generate_latest(metrics.registry).decode()
    return {
        (
            sample.name,
            ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(samples: dict[tuple[str, str], float], name: str, label: str = "") -> float:
    return sum(value for (found, labels), value in samples.items() if found == name and label in labels)


def watched(limits: PermitLimits | None = None, **plugins: object) -> tuple[Metrics, Permits, Dispatcher]:
    metrics = Metrics()
    permits = Permits(limits)
    dispatcher = Dispatcher(PluginRegistry.load(given=plugins), on_call=metrics.plugin_call)
    metrics.watch(permits, dispatcher)
    metrics.watch_server(Server())
    return metrics, permits, dispatcher


def test_the_names() -> None:
    metrics, _, _ = watched()
    text = generate_latest(metrics.registry).decode()
    found = {family.name for family in text_string_to_metric_families(text)}
    assert {name for name in found if name.startswith("broker_core_")} == UPSTREAM | OURS
    assert "process_resident_memory_bytes" in found
    for line in text.splitlines():
        assert not line.startswith("# HELP broker_core_") or len(line.split(" ", 3)[3]) > 10


def test_the_log_is_one_of_the_process() -> None:
    before = total(scraped(Metrics()), "broker_core_log_dropped_total", "reason=full")
    dropped_lines.add("full", 7)
    samples = scraped(Metrics())
    assert samples["broker_core_log_dropped_total", "reason=full"] == before + 7
    assert {labels for name, labels in samples if name == "broker_core_log_dropped_total"} == {
        "reason=full",
        "reason=rate",
        "reason=failed",
    }


class Both:
    """Lists and hides nothing."""

    @hookimpl
    def broker_core_list_topics(self) -> None:
        return None

    @hookimpl
    def broker_core_visible(self) -> None:
        return None


def test_every_label_is_there_from_the_start_with_zero() -> None:
    metrics, _, dispatcher = watched(both=Both())
    samples = scraped(metrics)
    before = set(samples)
    for name, labels in before:
        if name == "broker_core_log_dropped_total":
            continue  # of the process, whatever was dropped before
        if name.startswith("broker_core_") and name.endswith(("_total", "_count")):
            assert samples[name, labels] == 0, (name, labels)
    for outcome, plan in LISTINGS:
        metrics.listing_refused("time", 1) if outcome == "error" else metrics.listing(outcome, plan, 1, 1)
    for reason in REFUSALS:
        metrics.refused(reason)
        metrics.listing_refused(reason, 1)
    for reason in CLOSURES:
        metrics.connection_closed(reason)
    for hook in dispatcher.hooks()["both"]:
        for outcome in CALL_OUTCOMES[hook]:
            metrics.plugin_call("both", hook, outcome, 0.1)
    metrics.stale_answer("both", 1)
    assert set(scraped(metrics)) == before
    labels = "hook=visible,outcome=mask,plugin=both"
    assert ("broker_core_listing_plugin_calls_total", labels) in before
    assert ("broker_core_listing_claim_mismatch_total", "plugin=both") in before


def test_two_brokers_of_a_process_do_not_mix() -> None:
    first, second = Metrics(), Metrics()
    first.listing("served", "scan", 3, 0.1)
    assert total(scraped(first), "broker_core_listing_requests_total") == 1
    assert total(scraped(second), "broker_core_listing_requests_total") == 0


def test_listings_by_outcome_and_plan_and_their_identities() -> None:
    metrics, _, _ = watched()
    for _ in range(3):
        metrics.listing("served", "range", 1000, 0.0002)
    metrics.listing("unchanged", "none", 0, 0.0001)
    metrics.listing_refused("plugin_error", 0.5)
    metrics.listing_refused("time", 40.0)
    samples = scraped(metrics)
    assert samples["broker_core_listing_requests_total", "outcome=served,plan=range"] == 3
    assert samples["broker_core_listing_requests_total", "outcome=unchanged,plan=none"] == 1
    assert samples["broker_core_listing_rejected_total", "reason=time"] == 1
    requests = total(samples, "broker_core_listing_requests_total")
    errors = total(samples, "broker_core_listing_requests_total", "outcome=error")
    assert errors == total(samples, "broker_core_listing_rejected_total") == 2
    assert requests == samples["broker_core_listing_seconds_count", ""] == 6
    assert requests - errors == samples["broker_core_listing_names_count", ""] == 4
    assert samples["broker_core_listing_names_sum", ""] == 3000
    assert samples["broker_core_listing_seconds_bucket", "le=28.0"] == 5
    assert samples["broker_core_listing_seconds_bucket", "le=+Inf"] == 6


def test_what_servers_report() -> None:
    metrics, _, _ = watched()
    metrics.refused("frame_limit")
    metrics.connection_closed("stalled")
    metrics.connection_refused("address")
    metrics.accept_paused()
    metrics.ignored_properties(4)
    samples = scraped(metrics)
    assert samples["broker_core_listing_errors_sent_total", "reason=frame_limit"] == 1
    assert samples["broker_core_connections_closed_total", "reason=stalled"] == 1
    assert samples["broker_core_connections_refused_total", "reason=address"] == 1
    assert samples["broker_core_connections_refused_total", "reason=files"] == 0
    assert samples["broker_core_accept_pauses_total", ""] == 1
    assert samples["broker_core_ignored_properties_total", ""] == 4
    assert (samples["broker_core_connections", ""], samples["broker_core_lookups_in_flight", ""]) == (3, 2)


async def test_permits() -> None:
    metrics, permits, _ = watched(PermitLimits(heap=100, direct=1000, snapshots=500, timeout=0.01, queue=7))
    held = await permits.heap.acquire(60)
    permits.snapshots.try_acquire(5)
    permits.reserve.try_acquire(10)
    permits.direct.try_acquire(20)
    waiting = asyncio.create_task(permits.heap.acquire(50, timeout=60))
    await asyncio.sleep(0)
    with pytest.raises(PermitTimeout):
        await permits.heap.acquire(50)
    samples = scraped(metrics)
    heap, direct = "broker_core_topic_list_heap", "broker_core_topic_list_direct"
    assert samples[f"{heap}_memory_used_bytes", ""] == 60
    assert samples[f"{heap}_memory_limit_bytes", ""] == 100
    assert (samples[f"{heap}_queue_size", ""], samples[f"{heap}_queue_max_size", ""]) == (1, 7)
    assert samples[f"{heap}_timeout_total", ""] == 1
    assert samples[f"{direct}_memory_used_bytes", ""] == 30
    assert samples[f"{direct}_memory_limit_bytes", ""] == 1000
    assert samples[f"{direct}_wait_time_seconds_count", ""] == 2
    assert samples["broker_core_snapshots_memory_used_bytes", ""] == 5
    assert samples["broker_core_snapshots_memory_limit_bytes", ""] == 500
    held.release()
    await waiting
    samples = scraped(metrics)
    assert samples[f"{heap}_wait_time_seconds_count", ""] == 3  # at once, in vain, and after a while
    assert samples[f"{heap}_wait_time_seconds_bucket", "le=0.001"] >= 1


async def test_plugins_and_their_identity() -> None:
    def broken() -> None:
        raise ValueError("x")

    metrics, _, dispatcher = watched(
        good=PluginOf(list_topics=lambda: None), bad=PluginOf(list_topics=broken)
    )
    for _ in range(7):
        with pytest.raises(PluginFailed):
            await dispatcher.ask(asked())
    dispatcher.claim_mismatch("good", 3)
    samples = scraped(metrics)
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


async def test_the_time_that_plugins_hold_the_loop() -> None:
    async def broker_core_list_topics() -> None:
        time.sleep(0.11)  # noqa: ASYNC251 - a plugin that does what it must not

    plugin = PluginOf(list_topics=broker_core_list_topics, visible=lambda: None)
    metrics, _, dispatcher = watched(p=plugin)
    blocked = "broker_core_listing_plugin_loop_blocked_total"
    seconds = "broker_core_listing_plugin_loop_seconds_total"
    before = scraped(metrics)
    for hook in ("list_topics", "visible"):
        assert [before[name, f"hook={hook},plugin=p"] for name in (blocked, seconds)] == [0, 0]
    await dispatcher.ask(asked())
    after = scraped(metrics)
    assert after[blocked, "hook=list_topics,plugin=p"] == 1
    assert after[seconds, "hook=list_topics,plugin=p"] >= 0.11
    assert after[blocked, "hook=visible,plugin=p"] == 0
    await dispatcher.shutdown()


def test_buckets_are_cumulative_and_closed_above() -> None:
    buckets = Buckets((1, 10))
    for value in (0, 1, 2, 10, 11):
        buckets.observe(value)
    assert buckets.cumulative() == [("1.0", 2), ("10.0", 4), ("+Inf", 5)]
    assert buckets.cumulative(more_at_zero=2) == [("1.0", 4), ("10.0", 6), ("+Inf", 7)]
    assert (buckets.count, buckets.sum) == (5, 24)
