"""The plugin's metrics, read when they are scraped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from broker_core_spark.serving.answer_cache import AnswerCache
from broker_core_spark.serving.counters import AnswerCounts

if TYPE_CHECKING:
    from broker_core_spark.serving.generation_refresher import GenerationRefresher

__all__ = ["PREFIX", "ServingMetrics"]

PREFIX: Final = "broker_core_spark_"


class ServingMetrics(Collector):
    """What is counted and what is served, as metrics. No label holds a name of a namespace, a topic or a pattern."""

    def __init__(
        self,
        shelf: GenerationRefresher,
        tally: AnswerCounts,
        answers: AnswerCache,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._shelf = shelf
        self._tally = tally
        self._answers = answers
        self._clock = clock

    def describe(self) -> Iterable[Metric]:
        """Nothing ahead: all names begin with the plugin's prefix."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        tally, shelf = self._tally, self._shelf
        yield _counter("answers", "Questions that were answered, by outcome.", "outcome", tally.answers)
        yield _counter("passed", "Questions left to the next lister, by reason.", "reason", tally.passed)
        yield _counter("checks", "Generations that were checked wholly, by result.", "result", tally.checks)
        answered, passed = tally.last_hour()
        hour = GaugeMetricFamily(
            f"{PREFIX}last_hour_questions",
            "Questions of the last hour: answered here, or passed on.",
            labels=["outcome"],
        )
        hour.add_metric(["answered"], answered)
        hour.add_metric(["passed"], passed)
        yield hour
        yield _gauge(
            "refused",
            "Whether the current generation of the store cannot be served.",
            shelf.refused is not None,
        )
        yield _gauge(
            "kept_answers_bytes", "Memory of answers that changes touched.", self._answers.alive_bytes
        )
        yield from self._generation()

    def _generation(self) -> Iterator[Metric]:
        served, published = self._shelf.served, self._shelf.published
        if served is None or published is None:
            return
        generation = served.generation
        yield InfoMetricFamily(
            f"{PREFIX}generation",
            "The generation that is served, and as which number it was published.",
            {"generation": generation.id, "number": str(published.number)},
        )
        yield _gauge(
            "generation_age_seconds",
            "Seconds since it was published.",
            max(0.0, self._clock() - _utc(published.when).timestamp()),
        )
        yield _gauge("questions", "Questions that it answers.", generation.questions)
        yield _gauge("topics", "Topics in it.", generation.topics)
        yield _gauge("mapped_bytes", "Bytes of its files that are mapped.", generation.mapped_bytes)
        overlays = served.overlays
        yield _gauge(
            "overlay_namespaces", "Namespaces that are followed since they were asked for.", len(overlays)
        )
        yield _gauge(
            "overlay_names", "Topics that changed there since the generation.", served.overlay_names()
        )
        yield _gauge(
            "overlays_ended",
            "Namespaces that can no longer be followed: too many changes, or a gap.",
            sum(follower.ended is not None for follower in overlays.values()),
        )


def _utc(when: datetime) -> datetime:
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}{name}", text, value)


def _counter(name: str, text: str, label: str, counts: dict[str, int]) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}{name}", text, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family
