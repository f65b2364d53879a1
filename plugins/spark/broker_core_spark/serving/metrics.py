"""The plugin's metrics: counters of answers, and the collector that Prometheus scrapes."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from broker_core import BoundedCache
from broker_core_spark.serving.generation_refresher import GenerationRefresher
from broker_core_spark.serving.pass_to_next_lister import PASS_REASONS
from broker_core_spark.serving.served_generation import CachedAnswer

__all__ = ["HOUR", "PREFIX", "AnswerCounts", "ServingMetrics"]

PREFIX: Final = "broker_core_spark_"
#: Seconds of the last hour's counters, which have one bucket a minute.
HOUR: Final = 3600
_MINUTE: Final = 60


class AnswerCounts:
    """Counters of one plugin, for one thread. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        #: Answers by outcome: ``served``, ``unchanged``, ``stale``.
        self.answers: Counter[str] = Counter({"served": 0, "unchanged": 0, "stale": 0})
        #: Questions that were passed on, by reason.
        self.passed: Counter[str] = Counter(dict.fromkeys(PASS_REASONS, 0))
        #: Verified generations by result: ``ok``, ``failed``.
        self.checks: Counter[str] = Counter({"ok": 0, "failed": 0})
        self._clock = clock
        self._minutes: deque[list[int]] = deque()  # (minute, answered, passed on)

    def answered(self, outcome: str) -> None:
        """Count an answered question."""
        self.answers[outcome] += 1
        self._minute()[1] += 1

    def passed_on(self, reason: str) -> None:
        """Count a question that passed to the next lister."""
        self.passed[reason] += 1
        self._minute()[2] += 1

    def checked(self, result: str) -> None:
        """Count a verified generation."""
        self.checks[result] += 1

    def last_hour(self) -> tuple[int, int]:
        """The questions of the last hour: (answered, passed on)."""
        self._minute()
        return sum(minute[1] for minute in self._minutes), sum(minute[2] for minute in self._minutes)

    def _minute(self) -> list[int]:
        now = int(self._clock() // _MINUTE)
        minutes = self._minutes
        if not minutes or minutes[-1][0] != now:
            minutes.append([now, 0, 0])
            while minutes[0][0] <= now - HOUR // _MINUTE:
                minutes.popleft()
        return minutes[-1]


class ServingMetrics(Collector):
    """The collector of all metrics. No label has the name of a namespace, a topic or a pattern."""

    def __init__(
        self,
        refresher: GenerationRefresher,
        counts: AnswerCounts,
        answers: BoundedCache[bytes, CachedAnswer],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._refresher = refresher
        self._counts = counts
        self._answers = answers
        self._clock = clock

    def describe(self) -> Iterable[Metric]:
        """No metrics are described ahead: the prefix keeps their names apart."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        counts, refresher = self._counts, self._refresher
        last_hour = dict(zip(("answered", "passed"), counts.last_hour(), strict=True))
        for family, name, text, label, values in (
            (
                CounterMetricFamily,
                "answers",
                "Questions that were answered, by outcome.",
                "outcome",
                counts.answers,
            ),
            (
                CounterMetricFamily,
                "passed",
                "Questions left to the next lister, by reason.",
                "reason",
                counts.passed,
            ),
            (
                CounterMetricFamily,
                "checks",
                "Generations that were checked wholly, by result.",
                "result",
                counts.checks,
            ),
            (
                GaugeMetricFamily,
                "last_hour_questions",
                "Questions of the last hour: answered here, or passed on.",
                "outcome",
                last_hour,
            ),
        ):
            metric = family(f"{PREFIX}{name}", text, labels=[label])
            for value, count in values.items():
                metric.add_metric([value], count)
            yield metric
        for name, text, figure in (
            (
                "refused",
                "Whether the current generation of the store cannot be served.",
                refresher.refused is not None,
            ),
            ("kept_answers_bytes", "Memory of answers that changes touched.", self._answers.nbytes),
        ):
            yield GaugeMetricFamily(f"{PREFIX}{name}", text, figure)
        yield from self._generation()

    def _generation(self) -> Iterator[Metric]:
        served, published = self._refresher.served, self._refresher.published
        if served is None or published is None:
            return
        generation = served.generation
        yield InfoMetricFamily(
            f"{PREFIX}generation",
            "The generation that is served, as which number it was published, and what keeps its answers right.",
            {"generation": generation.id, "number": str(published.number), "follows": served.follows},
        )
        followers = served.followers
        for name, text, figure in (
            (
                "generation_age_seconds",
                "Seconds since it was published.",
                max(0.0, self._clock() - published.when.timestamp()),
            ),
            (
                "state_age_seconds",
                "Seconds since it was published, or since the last look at its table.",
                max(0.0, served.age),
            ),
            ("questions", "Questions that it answers.", generation.manifest.question_count),
            ("topics", "Topics in it.", generation.manifest.topics),
            ("mapped_bytes", "Bytes of its files that are mapped.", generation.opened.mapped_bytes),
            (
                "index_bytes",
                "Memory of the index of namespaces with several segments, made when they are asked for.",
                sum(generation.indexed.values()),
            ),
            ("overlay_namespaces", "Namespaces that are followed since they were asked for.", len(followers)),
            (
                "overlay_names",
                "Topics that changed there since the generation.",
                served.overlay_names(),
            ),
            (
                "overlays_ended",
                "Namespaces that can no longer be followed: too many changes, or a gap.",
                sum(follower.ended is not None for follower in followers.values()),
            ),
        ):
            yield GaugeMetricFamily(f"{PREFIX}{name}", text, figure)
