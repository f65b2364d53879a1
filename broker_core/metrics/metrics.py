"""The metrics of one broker, for Prometheus.

A metric is declared at one place, by name, help text and labels: here, or beside its value, with the methods
:meth:`Metrics.counter`, :meth:`Metrics.histogram`, :meth:`Metrics.gauge`, :meth:`Metrics.read_counter` and
:meth:`Metrics.read_histogram`. One object holds one registry, so that several brokers of a process do not mix. No
label ever holds a name of a topic or namespace, a pattern, a principal or a property.

Counters and histograms are for the event loop's thread and take no lock: a counter of prometheus_client takes one, and
several of them would cost more than a small listing may. The counts are made a family of prometheus_client at the
scrape.

Identities that hold at every scrape (``tests/metrics/test_metrics.py`` checks them):

- ``listing_requests_total`` with outcome ``error`` is the sum of ``listing_rejected_total``;
- the sum of ``listing_requests_total`` is the count of ``listing_seconds``;
- its samples with outcome ``served`` or ``unchanged`` are the count of ``listing_names``;
- ``listing_plugin_calls_total`` is the count of ``listing_plugin_seconds`` and the calls that an open breaker refused.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from typing import Any, Final, TypeVar

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
from broker_core.metrics.labels import AUTHENTICATIONS, CLOSURES, DENIALS, LISTINGS, NO_PLACE, REFUSALS
from broker_core.metrics.plugin_metrics import PluginMetrics

__all__ = ["PREFIX", "Buckets", "Instrument", "LoopCounter", "LoopHistogram", "Metrics"]

PREFIX: Final = "broker_core_"


class Buckets:
    """The counts of one histogram: observing is one search and two additions.

    ``more_at_zero`` is read at the scrape and counts observations of 0 besides.
    """

    __slots__ = ("_bounds", "_counts", "_more_at_zero", "sum")

    def __init__(self, bounds: tuple[float, ...], more_at_zero: Callable[[], int] = lambda: 0) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._more_at_zero = more_at_zero
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self) -> list[tuple[str, float]]:
        """Bounds and counts as Prometheus has them."""
        names, more = [*map(floatToGoString, self._bounds), "+Inf"], self._more_at_zero()
        return [(name, count + more) for name, count in zip(names, accumulate(self._counts), strict=True)]


class Instrument:
    """One metric. ``kind`` is the class of its family, ``name`` has neither prefix nor suffix.

    ``read`` gives its values at the scrape, numbers or :class:`Buckets`: by the values of its labels, or one value if
    it has none.
    """

    __slots__ = ("_kind", "_read", "labels", "name", "text")

    def __init__(
        self,
        kind: Callable[..., Any],
        name: str,
        text: str,
        labels: tuple[str, ...],
        read: Callable[[], Any],
    ) -> None:
        self._kind = kind
        self.name = name
        self.text = text
        self.labels = labels
        self._read = read

    def family(self) -> Metric:
        """The metric as a scrape sees it now."""
        family: Any = self._kind(PREFIX + self.name, self.text, labels=self.labels)
        found = self._read()
        for values, value in (found if isinstance(found, Mapping) else {(): found}).items():
            sample = (value.cumulative(), value.sum) if isinstance(value, Buckets) else (value,)
            family.add_metric((values,) if isinstance(values, str) else values, *sample)
        return family  # type: ignore[no-any-return]  # each kind adds samples by a signature of its own


class LoopCounter(Instrument):
    """A counter; calling it with the values of its labels counts one. Values that are ``known`` begin with 0."""

    __slots__ = ("counts",)

    def __init__(
        self, name: str, text: str, labels: tuple[str, ...], known: Iterable[tuple[str, ...]]
    ) -> None:
        #: The counts by the values of the labels; hot code counts here itself, without a call.
        self.counts: Counter[tuple[str, ...]] = Counter(dict.fromkeys(known, 0))
        super().__init__(CounterMetricFamily, name, text, labels, lambda: self.counts)

    def __call__(self, *values: str) -> None:
        self.counts[values] += 1

    def add(self, count: int, *values: str) -> None:
        """Count several at once."""
        self.counts[values] += count


class LoopHistogram(Instrument):
    """A histogram. Without labels it is there from the start, with labels since :meth:`of` had their values."""

    __slots__ = ("_made", "buckets")

    def __init__(self, name: str, text: str, labels: tuple[str, ...], made: Callable[[], Buckets]) -> None:
        self.buckets: dict[tuple[str, ...], Buckets] = {} if labels else {(): made()}
        self._made = made
        super().__init__(HistogramMetricFamily, name, text, labels, lambda: self.buckets)

    def of(self, *values: str) -> Buckets:
        """The buckets of these values of the labels."""
        buckets = self.buckets.get(values)
        if buckets is None:
            buckets = self.buckets[values] = self._made()
        return buckets


_Declared = TypeVar("_Declared", bound=Instrument)

_SECONDS_BOUNDS: Final = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 28.0)
_AGE_BOUNDS: Final = (1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
_NAMES_BOUNDS: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


class Metrics(Collector):
    """The metrics of one broker; ``registry`` is what HTTP serves. All methods are for the event loop's thread.

    A counter is called to count: ``metrics.connection_closed("stalled")``.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._instruments: dict[str, Instrument] = {}
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        #: Metrics that plugins register.
        self.of_plugins = PluginMetrics()
        self.registry.register(self.of_plugins)

        # -- listings; :meth:`listing` and :meth:`listing_refused` count several metrics at once
        self._requests = self.counter(
            "listing_requests",
            "Listings by outcome (served, unchanged, error), and by how the pattern was matched.",
            "outcome",
            "plan",
            known=LISTINGS,
        )
        self._rejected = self.counter(
            "listing_rejected", "Listings that got no answer, by reason.", "reason", known=REFUSALS
        )
        self._seconds = self.histogram(
            "listing_seconds",
            "Seconds from a listing's request to its answer, before it is written.",
            _SECONDS_BOUNDS,
        ).of()
        self._names = self.histogram(
            "listing_names", "Names in an answer; unchanged ones have none.", _NAMES_BOUNDS
        ).of()
        self.refused = self.counter(
            "listing_errors_sent",
            "Errors sent in answer to listings, by reason: rejected ones, and answers that could not be sent.",
            "reason",
            known=REFUSALS,
        )
        #: Called with the number of ignored properties.
        self.ignored_properties = self.counter(
            "ignored_properties",
            "Properties in requests that select nothing, since catalog.property_keys does not name them.",
        ).add
        #: Called with the action, and the part that denied it.
        self.denied = self.counter(
            "denials",
            "Requests of clients that were denied, by action, and by what denied them: rules, gates or brokers.",
            "action",
            "by",
            known=DENIALS,
        )

        # -- connections
        self.connection_closed = self.counter(
            "connections_closed",
            "Connections that the server closed, by reason.",
            "reason",
            known=CLOSURES,
        )
        self.connection_refused = self.counter(
            "connections_refused",
            "Clients that got no place, by the bound that was reached.",
            "reason",
            known=NO_PLACE,
        )
        self.haproxy_preamble = self.counter(
            "haproxy_preambles",
            "Connections of proxies by the content of their preamble: client (its address), own (a connection of the "
            "proxy itself), refused (none, or a wrong one).",
            "outcome",
            known=("client", "own", "refused"),
        )
        #: Called with the transport and the outcome.
        self.authentication = self.counter(
            "authentications",
            "Clients that were authenticated or refused: ok, anonymous, renewed, or why they were refused.",
            "transport",
            "outcome",
            known=AUTHENTICATIONS,
        )
        self.accept_paused = self.counter(
            "accept_pauses", "Times that accepting clients paused, since no file descriptor was left."
        )

        # -- plugins; :meth:`plugin_call` counts two metrics at once
        self._calls = self.counter(
            "listing_plugin_calls", "Calls of plugins by outcome.", "plugin", "hook", "outcome"
        )
        self._call_seconds = self.histogram(
            "listing_plugin_seconds",
            "Seconds that calls of plugins took, without those in which they waited for the broker.",
            _SECONDS_BOUNDS,
            "plugin",
            "hook",
        )
        self._stale_ages = self.histogram(
            "listing_plugin_stale_age_seconds",
            "Age of plugins' former answers that were given.",
            _AGE_BOUNDS,
            "plugin",
        )
        self.read_counter(
            "listing_plugin_stale",
            "Failures of a plugin that its last answer stood in for (on_failure is stale).",
            lambda: {plugin: ages.count for plugin, ages in self._stale_ages.buckets.items()},
            "plugin",
        )

        # -- the process
        self.read_counter(
            "log_dropped",
            "Log lines of this process that were not written, by reason.",
            dropped_lines.counts,
            "reason",
        )

    def collect(self) -> Iterator[Metric]:
        """The metrics at the moment of the scrape."""
        yield InfoMetricFamily(f"{PREFIX}build", "The version that runs.", {"version": _version()})
        for instrument in self._instruments.values():
            yield instrument.family()

    # -- declaring a metric -----------------------------------------------------------------------------------

    def counter(
        self, name: str, text: str, *labels: str, known: Iterable[str | tuple[str, ...]] = ()
    ) -> LoopCounter:
        """A counter of events. ``known`` are the values of the labels that appear from the start."""
        values = [(value,) if isinstance(value, str) else value for value in known] if labels else [()]
        return self._declare(LoopCounter(name, text, labels, values))

    def histogram(
        self,
        name: str,
        text: str,
        bounds: tuple[float, ...],
        *labels: str,
        more_at_zero: Callable[[], int] = lambda: 0,
    ) -> LoopHistogram:
        """A histogram of observations; ``more_at_zero`` is read at the scrape and counts observations of 0 besides."""
        return self._declare(LoopHistogram(name, text, labels, partial(Buckets, bounds, more_at_zero)))

    def gauge(
        self, name: str, text: str, read: Callable[[], float | Mapping[Any, float]], *labels: str
    ) -> None:
        """A gauge that is read at each scrape: one value, or values by labels."""
        self._declare(Instrument(GaugeMetricFamily, name, text, labels, read))

    def read_counter(
        self, name: str, text: str, read: Callable[[], float | Mapping[Any, float]], *labels: str
    ) -> None:
        """A counter that is read at each scrape: one value, or values by labels."""
        self._declare(Instrument(CounterMetricFamily, name, text, labels, read))

    def read_histogram(
        self, name: str, text: str, read: Callable[[], Mapping[Any, Buckets]], *labels: str
    ) -> None:
        """A histogram that is read at each scrape, whose buckets another part fills."""
        self._declare(Instrument(HistogramMetricFamily, name, text, labels, read))

    def find(self, name: str) -> Instrument | None:
        """The metric of this name, if it is declared."""
        return self._instruments.get(name)

    def _declare(self, instrument: _Declared) -> _Declared:
        if self._instruments.setdefault(instrument.name, instrument) is not instrument:
            raise ValueError(f"there is a metric {instrument.name!r} already")
        return instrument

    # -- events that count in several metrics -----------------------------------------------------------------------

    def listing(self, outcome: str, plan: str, topics: int, seconds: float) -> None:
        """Count a listing that was answered with ``topics`` names.

        ``outcome`` is ``served`` or ``unchanged``, ``plan`` how its pattern was matched: ``literal``, ``range``,
        ``scan``, ``unsupported``, or ``none`` without one.
        """
        self._requests.counts[outcome, plan] += 1
        self._seconds.observe(seconds)
        self._names.observe(topics)

    def listing_refused(self, reason: str, seconds: float) -> None:
        """Count a listing that got no answer; ``reason`` is the one of the :exc:`~broker_core.errors.ListingFailed`."""
        self._requests("error", "unknown")
        self._rejected(reason)
        self._seconds.observe(seconds)

    def plugin_call(self, plugin: str, hook: str, answer: str, seconds: float | None) -> None:
        """Count one call of a hook of a plugin; ``seconds`` is ``None`` if the breaker refused it."""
        self._calls.counts[plugin, hook, answer] += 1
        if seconds is not None:
            known = self._call_seconds.buckets.get((plugin, hook))
            (known or self._call_seconds.of(plugin, hook)).observe(seconds)

    def stale_answer(self, plugin: str, age: float) -> None:
        """Count a failure of a plugin whose last answer was taken instead, which is ``age`` seconds old."""
        self._stale_ages.of(plugin).observe(age)

    def expect_calls(self, plugin: str, outcomes: Mapping[str, Iterable[str]]) -> None:
        """Show the calls of a plugin from now on, with 0: the outcomes that a call may have, by hook."""
        for hook, words in outcomes.items():
            self._call_seconds.of(plugin, hook)
            for word in words:
                self._calls.add(0, plugin, hook, word)
        if "list_topics" in outcomes:
            self._stale_ages.of(plugin)


@cache
def _version() -> str:
    try:
        return version("broker-core")
    except PackageNotFoundError:  # a source tree that is not installed
        return "unknown"


#: Bounds of the lag of the event loop, in seconds: for so long a client waits before anything is done for it.
_LAG_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
#: Seconds between two looks.
_INTERVAL: Final = 0.5


async def watch_event_loop(metrics: Metrics) -> None:
    """Declare the lag of the event loop, and look at it twice a second until cancelled."""
    lag = metrics.histogram(
        "event_loop_lag_seconds",
        "Seconds that the event loop was late, looked at twice a second.",
        _LAG_BOUNDS,
    ).of()
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _INTERVAL
        await asyncio.sleep(_INTERVAL)
        lag.observe(max(0.0, loop.time() - due))
