"""The metrics: their names are a contract with dashboards, and their identities hold."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from broker_core import hookimpl
from broker_core.logs import dropped_lines
from broker_core.metrics.labels import CLOSURES, LISTINGS, REFUSALS
from broker_core.metrics.metrics import Metrics
from broker_core.testing import serve
from tests.support.scraped import scraped, shown, total

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
    "broker_core_authentications",
    "broker_core_build_info",
    "broker_core_catalog_changes",
    "broker_core_catalog_last_change_seconds",
    "broker_core_event_loop_lag_seconds",
    "broker_core_connections",
    "broker_core_connections_closed",
    "broker_core_connections_refused",
    "broker_core_denials",
    "broker_core_followed_questions_failing",
    "broker_core_haproxy_preambles",
    "broker_core_http_connections",
    "broker_core_http_streams",
    "broker_core_http_request_seconds",
    "broker_core_http_requests",
    "broker_core_http_requests_under_way",
    "broker_core_http_response_bytes",
    "broker_core_ignored_properties",
    "broker_core_listing_claim_mismatch",
    "broker_core_listing_errors_sent",
    "broker_core_listing_warnings",
    "broker_core_listing_names",
    "broker_core_quota_buckets",
    "broker_core_quota_requests",
    "broker_core_quota_wait_seconds",
    "broker_core_quota_waiting",
    "broker_core_reload_awaiting_restart",
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
    "broker_core_reload_failing",
    "broker_core_shrink_guard_held",
    "broker_core_shrink_guard_listings",
    "broker_core_snapshots_memory_limit_bytes",
    "broker_core_snapshots_memory_used_bytes",
    "broker_core_stored_snapshots",
    "broker_core_tls_certificate_expires_seconds",
    "broker_core_tls_handshakes",
    "broker_core_tls_handshakes_under_way",
    "broker_core_watch_updates",
    "broker_core_watchers",
    "broker_core_watches",
    "broker_core_watches_refused",
    "broker_core_work_cpu_seconds",
    "broker_core_work_queue_size",
    "broker_core_work_wait_seconds",
}


async def test_the_names() -> None:
    async with serve() as server:
        text = generate_latest(server.broker.pipeline.metrics.registry).decode()
    found = {family.name for family in text_string_to_metric_families(text)}
    assert {name for name in found if name.startswith("broker_core_")} == UPSTREAM | OURS
    assert "process_resident_memory_bytes" in found
    for line in text.splitlines():
        assert not line.startswith("# HELP broker_core_") or len(line.split(" ", 3)[3]) > 10


def test_the_log_is_one_of_the_process() -> None:
    before = total(scraped(Metrics().registry), "broker_core_log_dropped_total", "reason=full")
    dropped_lines.add("full", 7)
    samples = scraped(Metrics().registry)
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
    metrics, _, dispatcher = shown(both=Both())
    samples = scraped(metrics.registry)
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
    for hook, outcomes in dispatcher.outcomes()["both"].items():
        for outcome in outcomes:
            metrics.plugin_call("both", hook, outcome, 0.1)
    metrics.stale_answer("both", 1)
    assert set(scraped(metrics.registry)) == before
    labels = "hook=visible,outcome=mask,plugin=both"
    assert ("broker_core_listing_plugin_calls_total", labels) in before
    assert ("broker_core_listing_claim_mismatch_total", "plugin=both") in before


def test_two_brokers_of_a_process_do_not_mix() -> None:
    first, second = Metrics(), Metrics()
    first.listing("served", "scan", 3, 0.1)
    assert total(scraped(first.registry), "broker_core_listing_requests_total") == 1
    assert total(scraped(second.registry), "broker_core_listing_requests_total") == 0


def test_listings_by_outcome_and_plan_and_their_identities() -> None:
    metrics, _, _ = shown()
    for _ in range(3):
        metrics.listing("served", "range", 1000, 0.0002)
    metrics.listing("unchanged", "none", 0, 0.0001)
    metrics.listing_refused("plugin_error", 0.5)
    metrics.listing_refused("time", 40.0)
    samples = scraped(metrics.registry)
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
    metrics, _, _ = shown()
    metrics.refused("frame_limit")
    metrics.connection_closed("stalled")
    metrics.connection_refused("address")
    metrics.accept_paused()
    metrics.ignored_properties(4)
    samples = scraped(metrics.registry)
    assert samples["broker_core_listing_errors_sent_total", "reason=frame_limit"] == 1
    assert samples["broker_core_connections_closed_total", "reason=stalled"] == 1
    assert samples["broker_core_connections_refused_total", "reason=address"] == 1
    assert samples["broker_core_connections_refused_total", "reason=files"] == 0
    assert samples["broker_core_accept_pauses_total", ""] == 1
    assert samples["broker_core_ignored_properties_total", ""] == 4


def test_a_name_is_declared_once() -> None:
    metrics = Metrics()
    metrics.counter("mine", "What is mine.")
    with pytest.raises(ValueError, match="'mine' already"):
        metrics.gauge("mine", "What is mine.", lambda: 1)
