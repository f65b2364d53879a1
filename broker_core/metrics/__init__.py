"""Metrics of a broker and its plugins, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.metrics.history import INTERVAL, History
    from broker_core.metrics.metrics import Buckets, Metrics
    from broker_core.metrics.permit_metrics import show_permits
    from broker_core.metrics.plugin_metrics import metric_prefix

__all__ = [
    "INTERVAL",
    "Buckets",
    "History",
    "Metrics",
    "metric_prefix",
    "show_permits",
    "watch_event_loop",
]

# A command that needs a name of it does not wait for all the others.
__getattr__ = lazy_exports(
    __name__,
    {
        "Buckets": ".metrics",
        "History": ".history",
        "INTERVAL": ".history",
        "Metrics": ".metrics",
        "metric_prefix": ".plugin_metrics",
        "show_permits": ".permit_metrics",
        "watch_event_loop": ".metrics",
    },
)
