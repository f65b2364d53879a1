"""The metrics of plugins that are read from the dispatcher: breakers, abandoned calls, time on the event loop."""

from __future__ import annotations

from broker_core.metrics import Metrics
from broker_core.plugins.dispatcher import Dispatcher

__all__ = ["show_plugins"]


def show_plugins(metrics: Metrics, plugins: Dispatcher) -> None:
    """Declare the metrics of these plugins, and show their calls with 0."""
    for plugin, outcomes in plugins.outcomes().items():
        metrics.expect_calls(plugin, outcomes)
    metrics.gauge(
        "listing_plugin_breaker_state",
        "The breaker of a plugin: 0 closed, 1 half-open, 2 open.",
        plugins.breaker_states,
        "plugin",
    )
    metrics.gauge(
        "listing_plugin_abandoned_calls",
        "Calls of a plugin that still run, though nobody waits for them any more.",
        plugins.abandoned_calls,
        "plugin",
    )
    metrics.read_counter(
        "listing_plugin_passed_over",
        "Failures of a plugin after which the next one was asked (on_failure is next).",
        plugins.passed_over,
        "plugin",
    )
    metrics.read_counter(
        "listing_plugin_dropped_outcomes",
        "Served listings that an observing plugin was too slow to see.",
        plugins.dropped_outcomes,
        "plugin",
    )
    metrics.read_counter(
        "listing_claim_mismatch",
        "Answers that claimed to be filtered and were not, or came with a wrong hash.",
        lambda: dict.fromkeys(plugins.outcomes(), 0) | plugins.claim_mismatches(),
        "plugin",
    )
    metrics.read_counter(
        "listing_plugin_loop_seconds",
        "Seconds for which async hooks of plugins held the event loop; nothing else ran then.",
        lambda: {each: time.seconds for each, time in plugins.loop_times().items()},
        "plugin",
        "hook",
    )
    metrics.read_counter(
        "listing_plugin_loop_blocked",
        "How often an async hook of a plugin held the event loop for 0.1 s or longer at a stretch.",
        lambda: {each: time.blocked for each, time in plugins.loop_times().items()},
        "plugin",
        "hook",
    )
