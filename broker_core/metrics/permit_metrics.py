"""The metrics of the memory permits: PIP-442's names with our prefix.

Pulsar's ``topic_list_heap_wait_time_ms`` is a summary in milliseconds, which cannot be aggregated; here it is the
histogram ``topic_list_heap_wait_time_seconds``. docs/reference/pulsar-behaviour.md#the-memory-limiter
"""

from __future__ import annotations

from typing import Final

from broker_core.memory import PermitBudget, Permits
from broker_core.metrics.metrics import Metrics

__all__ = ["show_permits"]

_WAIT_BOUNDS: Final = (0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 25.0)


def show_permits(metrics: Metrics, permits: Permits) -> None:
    """Declare the metrics of these budgets, and count waiting demands from now on."""
    _show(metrics, "heap", permits.heap)
    _show(metrics, "direct", permits.direct, permits.reserve)
    snapshots = permits.snapshots
    metrics.gauge("snapshots_memory_used_bytes", "Memory of kept namespaces.", lambda: snapshots.acquired)
    metrics.gauge(
        "snapshots_memory_limit_bytes",
        "Memory that kept namespaces may take; 0 is unlimited.",
        lambda: snapshots.maximum,
    )


def _show(metrics: Metrics, kind: str, *budgets: PermitBudget) -> None:
    name = f"topic_list_{kind}"
    metrics.gauge(
        f"{name}_memory_used_bytes",
        f"Permits of {kind} memory that listings hold.",
        lambda: sum(budget.acquired for budget in budgets),
    )
    metrics.gauge(
        f"{name}_memory_limit_bytes",
        f"Permits of {kind} memory in all; 0 is unlimited.",
        lambda: sum(budget.maximum for budget in budgets),
    )
    metrics.gauge(
        f"{name}_queue_size",
        f"Listings that wait for {kind} memory.",
        lambda: sum(budget.queue_size for budget in budgets),
    )
    metrics.gauge(
        f"{name}_queue_max_size",
        f"Listings that may wait for {kind} memory; 0 is unlimited.",
        lambda: sum(budget.queue_limit for budget in budgets),
    )
    timeouts = metrics.counter(f"{name}_timeout", f"Listings that waited too long for {kind} memory.")
    waits = metrics.histogram(
        f"{name}_wait_time_seconds",
        f"Seconds that listings waited for {kind} memory; those that got none are among them.",
        _WAIT_BOUNDS,
        more_at_zero=lambda: sum(budget.granted_at_once for budget in budgets),
    ).of()

    def timed_out(seconds: float) -> None:
        timeouts()
        waits.observe(seconds)

    for budget in budgets:
        budget.on_wait = waits.observe
        budget.on_timeout = timed_out
