"""What a broker counts, for Prometheus: PIP-442's names with our prefix, and listings by outcome and plan.

One object holds one registry, so that several brokers of a process do not mix. Gauges are read when they are scraped.
What each listing passes is counted in plain dictionaries and lists, and made metrics of when it is scraped: a counter
of prometheus_client takes a lock, and several of them would cost more than a small listing may. No label ever holds a
name of a topic or namespace, a pattern, a principal or a property.

Identities that hold at every scrape (``tests/metrics/test_metrics.py`` checks them):

- ``listing_requests_total`` with outcome ``error`` is the sum of ``listing_rejected_total``;
- the sum of ``listing_requests_total`` is the count of ``listing_seconds``;
- those with outcome ``served`` or ``unchanged`` are the count of ``listing_names``;
- ``listing_plugin_calls_total`` is the count of ``listing_plugin_seconds`` and the calls that an open breaker refused.

Pulsar's ``topic_list_heap_wait_time_ms`` is a summary in milliseconds, which cannot be aggregated; here it is the
histogram ``topic_list_heap_wait_time_seconds``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from broker_core.logs import dropped_lines
from broker_core.memory.permits import PermitBudget, Permits
from broker_core.metrics.labels import CALL_OUTCOMES, CLOSURES, LISTINGS, REFUSALS, from_zero
from broker_core.metrics.plugin_metrics import PluginMetrics

__all__ = ["PREFIX", "Buckets", "Metrics", "WatchedPlugins", "WatchedThreads"]

PREFIX: Final = "broker_core_"

_WAIT_BOUNDS: Final = (0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 25.0)
_SECONDS_BOUNDS: Final = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 28.0)
_AGE_BOUNDS: Final = (1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
#: Why a client gets no place.
_REFUSALS: Final = ("connections", "address", "files")
_NAMES_BOUNDS: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


class Buckets:
    """A histogram for the event loop's thread only: observing is one search and two additions."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self, more_at_zero: int = 0) -> list[tuple[str, float]]:
        """Bounds and counts as Prometheus has them, with ``more_at_zero`` observations of 0 besides."""
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        return [
            (name, count + more_at_zero) for name, count in zip(names, accumulate(self._counts), strict=True)
        ]


class WatchedLoopTime(Protocol):
    """What is read of one hook of one plugin: seconds on the event loop, and how often it blocked it."""

    @property
    def seconds(self) -> float: ...
    @property
    def blocked(self) -> int: ...


class WatchedPlugins(Protocol):
    """What is read from the dispatcher of the plugins, by plugin."""

    def hooks(self) -> Mapping[str, tuple[str, ...]]: ...
    def breaker_states(self) -> Mapping[str, int]: ...
    def abandoned_calls(self) -> Mapping[str, int]: ...
    def passed_over(self) -> Mapping[str, int]: ...
    def claim_mismatches(self) -> Mapping[str, int]: ...
    def dropped_outcomes(self) -> Mapping[str, int]: ...
    def loop_times(self) -> Mapping[tuple[str, str], WatchedLoopTime]: ...


class WatchedThreads(Protocol):
    """What is read from the threads of one kind of work."""

    @property
    def waiting(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def waits(self) -> Buckets: ...


class _Slots(Protocol):
    @property
    def taken(self) -> int: ...


class WatchedServer(Protocol):
    """What is read from a server."""

    @property
    def connections(self) -> int: ...
    @property
    def slots(self) -> _Slots: ...


class Metrics:
    """The metrics of one broker; ``registry`` is what HTTP serves. All methods are for the event loop's thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests: Tally[tuple[str, ...]] = Tally()
        self._rejected: Tally[str] = Tally()
        self._seconds = Buckets(_SECONDS_BOUNDS)
        self._names = Buckets(_NAMES_BOUNDS)
        self._calls: Tally[tuple[str, ...]] = Tally()
        self._stale_ages: dict[str, Buckets] = {}
        self._call_seconds: dict[tuple[str, str], Buckets] = {}
        self._waits = {"heap": Buckets(_WAIT_BOUNDS), "direct": Buckets(_WAIT_BOUNDS)}
        self._timeouts = {"heap": 0, "direct": 0}
        self._errors: Tally[str] = Tally()
        self._closed: Tally[str] = Tally()
        self._refused = dict.fromkeys(_REFUSALS, 0)
        self._accept_pauses = 0
        self._ignored = 0
        self._add(
            lambda: [InfoMetricFamily(f"{PREFIX}build", "The version that runs.", {"version": _version()})]
        )
        self._add(self._listings)
        self._add(self._servers)
        self._add(self._plugins)
        self._add(_log_lines)
        ProcessCollector(registry=self.registry)
        #: What plugins register.
        self.of_plugins = PluginMetrics()
        self.registry.register(self.of_plugins)

    def listing(self, outcome: str, plan: str, topics: int, seconds: float) -> None:
        """A listing was answered with ``topics`` names.

        ``outcome`` is ``served`` or ``unchanged``, ``plan`` how its pattern was matched: ``literal``, ``range``,
        ``scan``, ``unsupported``, or ``none`` without one.
        """
        self._requests[outcome, plan] += 1
        self._seconds.observe(seconds)
        self._names.observe(topics)

    def listing_refused(self, reason: str, seconds: float) -> None:
        """A listing got no answer; ``reason`` is the one of the :exc:`~broker_core.errors.ListingFailed`."""
        self._requests["error", "unknown"] += 1
        self._rejected[reason] += 1
        self._seconds.observe(seconds)

    def refused(self, reason: str) -> None:
        """An error was sent in answer to a listing."""
        self._errors[reason] += 1

    def connection_closed(self, reason: str) -> None:
        """The server closed a connection."""
        self._closed[reason] += 1

    def connection_refused(self, reason: str) -> None:
        """A client got no place: ``connections``, ``address`` or ``files`` is the bound that was reached."""
        self._refused[reason] += 1

    def accept_paused(self) -> None:
        """There was no file descriptor for one more connection."""
        self._accept_pauses += 1

    def ignored_properties(self, count: int) -> None:
        """A request had this many properties that do not select."""
        self._ignored += count

    def plugin_call(self, plugin: str, hook: str, answer: str, seconds: float | None) -> None:
        """One call of a hook of a plugin; ``seconds`` is ``None`` where the breaker refused it."""
        self._calls[plugin, hook, answer] += 1
        if seconds is not None:
            buckets = self._call_seconds.get((plugin, hook))
            if buckets is None:
                buckets = self._call_seconds[plugin, hook] = Buckets(_SECONDS_BOUNDS)
            buckets.observe(seconds)

    def stale_answer(self, plugin: str, age: float) -> None:
        """A plugin failed, and its last answer was taken, which is ``age`` seconds old."""
        buckets = self._stale_ages.get(plugin)
        if buckets is None:
            buckets = self._stale_ages[plugin] = Buckets(_AGE_BOUNDS)
        buckets.observe(age)

    def watch(self, permits: Permits, plugins: WatchedPlugins) -> None:
        """Show budgets and plugins from now on."""
        for plugin, hooks in plugins.hooks().items():
            for hook in hooks:
                self._call_seconds.setdefault((plugin, hook), Buckets(_SECONDS_BOUNDS))
                for outcome in CALL_OUTCOMES[hook]:
                    self._calls[plugin, hook, outcome] += 0
            if "list_topics" in hooks:
                self._stale_ages.setdefault(plugin, Buckets(_AGE_BOUNDS))
        for budget in (permits.heap, permits.direct, permits.reserve):
            kind = "heap" if budget is permits.heap else "direct"
            budget.on_wait = self._waits[kind].observe
            budget.on_timeout = self._timed_out(kind)
        self._add(lambda: self._permits(permits))
        self._add(lambda: _plugin_states(plugins))

    def watch_threads(self, kinds: Mapping[str, WatchedThreads]) -> None:
        """Show the work in threads, by its kind, from now on."""
        self._add(lambda: _work(kinds))

    def watch_server(self, server: WatchedServer) -> None:
        """Show the connections of a server and its requests under way from now on."""
        self._add(
            lambda: [
                GaugeMetricFamily(f"{PREFIX}connections", "Open connections.", server.connections),
                GaugeMetricFamily(
                    f"{PREFIX}lookups_in_flight",
                    "Requests that take a place of a lookup.",
                    server.slots.taken,
                ),
            ]
        )

    def _timed_out(self, kind: str) -> Callable[[float], None]:
        def timed_out(seconds: float) -> None:
            self._timeouts[kind] += 1
            self._waits[kind].observe(seconds)

        return timed_out

    def _add(self, read: Callable[[], Iterable[Metric]]) -> None:
        self.registry.register(_Collected(read))

    def _listings(self) -> Iterator[Metric]:
        yield _counter(
            "listing_requests",
            "Listings by outcome (served, unchanged, error), and by how the pattern was matched.",
            ("outcome", "plan"),
            from_zero(LISTINGS, self._requests),
        )
        yield _counter(
            "listing_rejected",
            "Listings that got no answer, by reason.",
            ("reason",),
            _reasons(REFUSALS, self._rejected),
        )
        yield _histogram(
            "listing_seconds",
            "Seconds from a listing's request to its answer, before it is written.",
            self._seconds,
        )
        yield _histogram("listing_names", "Names in an answer; unchanged ones have none.", self._names)

    def _servers(self) -> Iterator[Metric]:
        yield _counter(
            "listing_errors_sent",
            "Errors sent in answer to listings, by reason: rejected ones, and answers that could not be sent.",
            ("reason",),
            _reasons(REFUSALS, self._errors),
        )
        yield _counter(
            "connections_closed",
            "Connections that the server closed, by reason.",
            ("reason",),
            _reasons(CLOSURES, self._closed),
        )
        yield _counter(
            "connections_refused",
            "Clients that got no place, by the bound that was reached.",
            ("reason",),
            {(reason,): count for reason, count in self._refused.items()},
        )
        yield CounterMetricFamily(
            f"{PREFIX}accept_pauses",
            "Times that accepting clients paused, since no file descriptor was left.",
            self._accept_pauses,
        )
        yield CounterMetricFamily(
            f"{PREFIX}ignored_properties",
            "Properties in requests that select nothing, since catalog.property_keys does not name them.",
            self._ignored,
        )

    def _plugins(self) -> Iterator[Metric]:
        yield _counter(
            "listing_plugin_calls",
            "Calls of plugins by outcome.",
            ("plugin", "hook", "outcome"),
            self._calls,
        )
        seconds = HistogramMetricFamily(
            f"{PREFIX}listing_plugin_seconds",
            "Seconds that calls of plugins took, without those in which they waited for the broker.",
            labels=["plugin", "hook"],
        )
        for key, buckets in self._call_seconds.items():
            seconds.add_metric(key, buckets.cumulative(), buckets.sum)
        yield seconds
        yield _counter(
            "listing_plugin_stale",
            "Failures of a plugin that its last answer stood in for (on_failure is stale).",
            ("plugin",),
            {(plugin,): buckets.count for plugin, buckets in self._stale_ages.items()},
        )
        ages = HistogramMetricFamily(
            f"{PREFIX}listing_plugin_stale_age_seconds",
            "How old such answers were.",
            labels=["plugin"],
        )
        for plugin, buckets in self._stale_ages.items():
            ages.add_metric([plugin], buckets.cumulative(), buckets.sum)
        yield ages

    def _permits(self, permits: Permits) -> Iterator[Metric]:
        parts: dict[str, tuple[PermitBudget, ...]] = {
            "heap": (permits.heap,),
            "direct": (permits.direct, permits.reserve),
        }
        for kind, budgets in parts.items():
            name = f"{PREFIX}topic_list_{kind}"
            yield GaugeMetricFamily(
                f"{name}_memory_used_bytes",
                f"Permits of {kind} memory that listings hold.",
                sum(budget.acquired for budget in budgets),
            )
            yield GaugeMetricFamily(
                f"{name}_memory_limit_bytes",
                f"Permits of {kind} memory in all; 0 is unlimited.",
                sum(budget.maximum for budget in budgets),
            )
            yield GaugeMetricFamily(
                f"{name}_queue_size",
                f"Listings that wait for {kind} memory.",
                sum(budget.queue_size for budget in budgets),
            )
            yield GaugeMetricFamily(
                f"{name}_queue_max_size",
                f"Listings that may wait for {kind} memory; 0 is unlimited.",
                sum(budget.queue_limit for budget in budgets),
            )
            yield CounterMetricFamily(
                f"{name}_timeout", f"Listings that waited too long for {kind} memory.", self._timeouts[kind]
            )
            yield _histogram(
                f"topic_list_{kind}_wait_time_seconds",
                f"Seconds that listings waited for {kind} memory; those that waited in vain are among them.",
                self._waits[kind],
                more_at_zero=sum(budget.granted_at_once for budget in budgets),
            )
        snapshots = permits.snapshots
        yield GaugeMetricFamily(
            f"{PREFIX}snapshots_memory_used_bytes", "Memory of namespaces that are kept.", snapshots.acquired
        )
        yield GaugeMetricFamily(
            f"{PREFIX}snapshots_memory_limit_bytes",
            "Memory that they may take; 0 is unlimited.",
            snapshots.maximum,
        )


class _Collected(Collector):
    """Metrics that are read when they are scraped."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        return self._read()


def _counter(name: str, text: str, labels: tuple[str, ...], counts: Mapping[tuple[str, ...], int]) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}{name}", text, labels=labels)
    for values, count in counts.items():
        family.add_metric(values, count)
    return family


def _reasons(known: Iterable[str], counts: Mapping[str, int]) -> Mapping[tuple[str, ...], int]:
    return from_zero(((reason,) for reason in known), {(reason,): count for reason, count in counts.items()})


def _histogram(name: str, text: str, buckets: Buckets, *, more_at_zero: int = 0) -> Metric:
    return HistogramMetricFamily(
        f"{PREFIX}{name}", text, buckets=buckets.cumulative(more_at_zero), sum_value=buckets.sum
    )


def _log_lines() -> Iterator[Metric]:
    yield _counter(
        "log_dropped",
        "Log lines of this process that were not written, by reason.",
        ("reason",),
        {(reason,): count for reason, count in dropped_lines.counts().items()},
    )


def _work(kinds: Mapping[str, WatchedThreads]) -> Iterator[Metric]:
    """What waits for a thread, and what the threads did."""
    waiting = GaugeMetricFamily(
        f"{PREFIX}work_queue_size", "Work of listings that waits for a thread.", labels=["kind"]
    )
    seconds = CounterMetricFamily(
        f"{PREFIX}work_cpu_seconds", "Seconds of the processor that threads took for it.", labels=["kind"]
    )
    waits = HistogramMetricFamily(
        f"{PREFIX}work_wait_seconds", "Seconds that it waited until its first slice.", labels=["kind"]
    )
    for kind, threads in kinds.items():
        waiting.add_metric([kind], threads.waiting)
        seconds.add_metric([kind], threads.seconds)
        waits.add_metric([kind], threads.waits.cumulative(), threads.waits.sum)
    yield waiting
    yield seconds
    yield waits


def _plugin_states(plugins: WatchedPlugins) -> Iterator[Metric]:
    def by_plugin(
        kind: type[GaugeMetricFamily | CounterMetricFamily], name: str, text: str, values: Mapping[str, int]
    ) -> Metric:
        family = kind(f"{PREFIX}listing_{name}", text, labels=["plugin"])
        for plugin, value in values.items():
            family.add_metric([plugin], value)
        return family

    yield by_plugin(
        GaugeMetricFamily,
        "plugin_breaker_state",
        "The breaker of a plugin: 0 closed, 1 half-open, 2 open.",
        plugins.breaker_states(),
    )
    yield by_plugin(
        GaugeMetricFamily,
        "plugin_abandoned_calls",
        "Calls of a plugin that still run, though nobody waits for them any more.",
        plugins.abandoned_calls(),
    )
    yield by_plugin(
        CounterMetricFamily,
        "plugin_passed_over",
        "Failures of a plugin after which the next one was asked (on_failure is next).",
        plugins.passed_over(),
    )
    yield by_plugin(
        CounterMetricFamily,
        "plugin_dropped_outcomes",
        "Served listings that an observing plugin was too slow to see.",
        plugins.dropped_outcomes(),
    )
    yield by_plugin(
        CounterMetricFamily,
        "claim_mismatch",
        "Answers that claimed to be filtered and were not, or came with a wrong hash.",
        dict.fromkeys(plugins.hooks(), 0) | dict(plugins.claim_mismatches()),
    )
    seconds = CounterMetricFamily(
        f"{PREFIX}listing_plugin_loop_seconds",
        "Seconds for which async hooks of plugins held the event loop; nobody else ran then.",
        labels=["plugin", "hook"],
    )
    blocked = CounterMetricFamily(
        f"{PREFIX}listing_plugin_loop_blocked",
        "How often an async hook of a plugin held the event loop for 0.1 s or longer at a stretch.",
        labels=["plugin", "hook"],
    )
    for (plugin, hook), loop_time in plugins.loop_times().items():
        seconds.add_metric([plugin, hook], loop_time.seconds)
        blocked.add_metric([plugin, hook], loop_time.blocked)
    yield seconds
    yield blocked


def _version() -> str:
    try:
        return version("broker-core")
    except PackageNotFoundError:  # a source tree that nobody installed
        return "unknown"
