"""What a broker counts, for Prometheus: PIP-442's names with our prefix, and listings by outcome and plan.

One object holds one registry, so that several brokers of a process do not mix. Gauges are read when they are scraped;
counters are bound to their labels beforehand, since each listing passes here. No label ever holds a name of a topic or
namespace, a pattern, a principal or a property.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from broker_core.permits import PermitBudget, Permits

__all__ = ["PREFIX", "Metrics"]

PREFIX: Final = "broker_core_"

_WAIT_BUCKETS: Final = (0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 25.0)
_SECONDS_BUCKETS: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.05,
    0.1,
    0.5,
    1.0,
    5.0,
    28.0,
)
_NAMES_BUCKETS: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


class Metrics:
    """The metrics of one broker; ``registry`` is what HTTP serves."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._listings = Counter(
            f"{PREFIX}listings", "Listings answered.", ["outcome", "plan"], registry=self.registry
        )
        self._refused = Counter(
            f"{PREFIX}listings_refused", "Listings refused, by reason.", ["reason"], registry=self.registry
        )
        self._seconds = Histogram(
            f"{PREFIX}listing_seconds",
            "Seconds from a listing's request to its answer, before it is written.",
            buckets=_SECONDS_BUCKETS,
            registry=self.registry,
        )
        self._topics = Histogram(
            f"{PREFIX}listing_topics", "Names in an answer.", buckets=_NAMES_BUCKETS, registry=self.registry
        )
        self._errors = Counter(
            f"{PREFIX}listing_errors_sent",
            "Errors sent in answer to listings, by reason: refused listings, and answers that could not be sent.",
            ["reason"],
            registry=self.registry,
        )
        self._closed = Counter(
            f"{PREFIX}connections_closed",
            "Connections that the server closed.",
            ["reason"],
            registry=self.registry,
        )
        self._ignored = Counter(
            f"{PREFIX}ignored_properties",
            "Request properties that do not select, since catalog.property_keys does not name them.",
            registry=self.registry,
        )
        self._calls = Counter(
            f"{PREFIX}plugin_calls", "Calls of plugins.", ["plugin", "hook", "answer"], registry=self.registry
        )
        self._call_seconds = Histogram(
            f"{PREFIX}plugin_seconds",
            "Seconds that calls of plugins took.",
            ["plugin", "hook"],
            buckets=_SECONDS_BUCKETS,
            registry=self.registry,
        )
        self._wait = {
            budget: Histogram(
                f"{PREFIX}topic_list_{budget}_wait_time_seconds",
                f"Seconds that requests waited for {budget} permits.",
                buckets=_WAIT_BUCKETS,
                registry=self.registry,
            )
            for budget in ("heap", "direct")
        }
        self._timeouts = {
            budget: Counter(
                f"{PREFIX}topic_list_{budget}_timeout",
                f"Requests that waited too long for {budget} permits.",
                registry=self.registry,
            )
            for budget in ("heap", "direct")
        }
        self._bound: dict[tuple[str, str], Any] = {}

    def listing(self, outcome: str, plan: str, topics: int, seconds: float) -> None:
        """A listing was answered: ``outcome`` is ``served`` or ``unchanged``."""
        counter = self._bound.get((outcome, plan))
        if counter is None:
            counter = self._bound[outcome, plan] = self._listings.labels(outcome, plan)
        counter.inc()
        self._seconds.observe(seconds)
        self._topics.observe(topics)

    def listing_refused(self, reason: str, seconds: float) -> None:
        """A listing got no answer from the pipeline."""
        self._refused.labels(reason).inc()
        self._seconds.observe(seconds)

    def refused(self, reason: str) -> None:
        """An error was sent in answer to a listing."""
        self._errors.labels(reason).inc()

    def connection_closed(self, reason: str) -> None:
        """The server closed a connection."""
        self._closed.labels(reason).inc()

    def ignored_properties(self, count: int) -> None:
        """A request had this many properties that do not select."""
        self._ignored.inc(count)

    def plugin_call(self, plugin: str, hook: str, answer: str, seconds: float | None) -> None:
        """One call of a hook of a plugin; ``seconds`` is ``None`` where it was not called at all."""
        self._calls.labels(plugin, hook, answer).inc()
        if seconds is not None:
            self._call_seconds.labels(plugin, hook).observe(seconds)

    def watch(self, permits: Permits, dispatcher: Any) -> None:
        """Show budgets and plugins from now on."""
        for budget in (permits.heap, permits.direct, permits.reserve):
            kind = "heap" if budget is permits.heap else "direct"
            budget.on_wait = self._wait[kind].observe
            budget.on_timeout = self._timed_out(kind)
        self.registry.register(_Collected(lambda: _permit_gauges(permits)))
        self.registry.register(_Collected(lambda: _plugin_gauges(dispatcher)))

    def _timed_out(self, kind: str) -> Callable[[float], None]:
        def timed_out(seconds: float) -> None:
            self._timeouts[kind].inc()
            self._wait[kind].observe(seconds)

        return timed_out

    def watch_server(self, server: Any) -> None:
        """Show the connections of a server and its requests under way from now on."""

        def gauges() -> Iterator[Metric]:
            yield GaugeMetricFamily(f"{PREFIX}connections", "Open connections.", server.connections)
            yield GaugeMetricFamily(f"{PREFIX}lookups", "Requests under way.", server.slots.taken)

        self.registry.register(_Collected(gauges))


class _Collected(Collector):
    """Gauges that are read when they are scraped."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        return self._read()


def _permit_gauges(permits: Permits) -> Iterator[Metric]:
    limits = permits.limits
    budgets: dict[str, tuple[PermitBudget, ...]] = {
        "heap": (permits.heap,),
        "direct": (permits.direct, permits.reserve),
    }
    for kind, parts in budgets.items():
        name = f"{PREFIX}topic_list_{kind}"
        yield GaugeMetricFamily(
            f"{name}_memory_used_bytes", f"{kind} permits taken.", sum(part.acquired for part in parts)
        )
        yield GaugeMetricFamily(
            f"{name}_memory_limit_bytes", f"{kind} permits in all.", sum(part.maximum for part in parts)
        )
        yield GaugeMetricFamily(
            f"{name}_queue_size",
            f"Requests that wait for {kind} permits.",
            sum(part.queue_size for part in parts),
        )
        yield GaugeMetricFamily(f"{name}_queue_max_size", f"Places to wait for {kind} permits.", limits.queue)
    yield GaugeMetricFamily(
        f"{PREFIX}snapshots_used_bytes", "Memory of namespaces kept as columns.", permits.snapshots.acquired
    )
    yield GaugeMetricFamily(
        f"{PREFIX}snapshots_limit_bytes", "Memory that they may have.", permits.snapshots.maximum
    )


def _plugin_gauges(dispatcher: Any) -> Iterator[Metric]:
    breakers = GaugeMetricFamily(
        f"{PREFIX}plugin_breaker_state", "0 closed, 1 half-open, 2 open.", labels=["plugin"]
    )
    for plugin, state in dispatcher.breaker_states().items():
        breakers.add_metric([plugin], state)
    abandoned = GaugeMetricFamily(
        f"{PREFIX}plugin_abandoned_calls", "Calls past their deadline that still run.", labels=["plugin"]
    )
    for plugin, count in dispatcher.abandoned_calls().items():
        abandoned.add_metric([plugin], count)
    mismatches = CounterMetricFamily(
        f"{PREFIX}listing_claim_mismatch",
        "Answers that claimed to be filtered and were not.",
        labels=["plugin"],
    )
    for plugin, count in dispatcher.claim_mismatches().items():
        mismatches.add_metric([plugin], count)
    yield from (breakers, abandoned, mismatches)
