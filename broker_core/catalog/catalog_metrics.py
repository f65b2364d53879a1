"""The metrics of the catalogue: how many changes its log has seen, and when the last one was."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from broker_core.catalog.catalog_lister import CatalogLister
from broker_core.metrics import Metrics

if TYPE_CHECKING:
    from broker_core.snapshots import StoredSnapshots

__all__ = ["show_catalog"]


def show_catalog(metrics: Metrics, lister: CatalogLister, stored: StoredSnapshots | None = None) -> None:
    """Declare the metrics. Before the first change they have no value; metrics of stored snapshots need
    ``stored``.
    """
    if stored is not None:
        stored.counts.show(metrics)
    metrics.read_counter(
        "catalog_changes",
        "Changes of topics in the log of the catalogue, by any process.",
        partial(_last_change, lister, 0),
    )
    metrics.gauge(
        "catalog_last_change_seconds",
        "The time of the last change of a topic in the log of the catalogue, in Unix seconds.",
        partial(_last_change, lister, 1),
    )


def _last_change(lister: CatalogLister, part: int) -> Mapping[Any, float]:
    change = lister.last_change()
    return {} if change is None else {(): change[part]}
