"""The plugin's lister: answers topic listings from precomputed generations, or passes them to the next lister."""

from __future__ import annotations

import asyncio
from typing import Any

from broker_core import BoundedCache, ListingRequest, TopicListingResult
from broker_core.errors import BrokerCoreError, Cause
from broker_core_spark.serving.changes.change_log_finder import ChangeLogFinder
from broker_core_spark.serving.generation_refresher import GenerationRefresher
from broker_core_spark.serving.metrics import AnswerCounts, ServingMetrics
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.pass_to_next_lister import PASS_REASONS, PassToNextLister
from broker_core_spark.serving.served_generation import CachedAnswer, ServedGeneration
from broker_core_spark.settings import SparkSettings

__all__ = ["PrecomputedTopicLister"]


class PrecomputedTopicLister:
    """The lister of one broker, on one event loop. Puts the parts of serving together."""

    def __init__(self, broker: Any, settings: SparkSettings) -> None:
        """``broker`` is the :class:`~broker_core.BrokerHandle`."""
        self.counts = AnswerCounts()
        self._broker = broker
        self._answers = BoundedCache[bytes, CachedAnswer](settings.answers)
        self._selecting: frozenset[str] | None = broker.selecting_keys
        #: The refresher of the served generation.
        self.refresher = GenerationRefresher(
            settings, self._serve, self.counts.checked, broker.report_problems
        )
        broker.metrics_registry.register(ServingMetrics(self.refresher, self.counts, self._answers))

    def _serve(self, generation: Generation, settings: SparkSettings) -> ServedGeneration:
        logs = ChangeLogFinder(self._broker.change_logs, timeout=settings.source_timeout)
        return ServedGeneration(generation, logs, self._answers, settings)

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        """The listing for a request, or why it passes to the next lister."""
        served = self.refresher.served
        try:
            if served is None:
                raise PassToNextLister("no_generation", self.refresher.why_none)
            answer = await served.answer(request, self._selecting)
        except PassToNextLister as passed:
            self.counts.passed_on(passed.reason)
            if self.refresher.is_source_of(str(request.namespace)) and await self._is_missing_elsewhere(
                request
            ):
                return TopicListingResult.refused(
                    f"{PASS_REASONS[passed.reason]}, and no other lister of this broker has {request.namespace}",
                    Cause.UNAVAILABLE,
                )
            return TopicListingResult.pass_through(f"{passed.reason}: {passed}")
        same = request.topics_hash == answer.topics_hash
        self.counts.answered("stale" if answer.stale else "unchanged" if same else "served")
        # The topics are given for an equal hash too: the broker compares with its own hash of them.
        return TopicListingResult.success(
            answer.selection,
            filtered=request.pattern is not None,
            topics_hash=answer.topics_hash,
            version=answer.version,
        )

    async def _is_missing_elsewhere(self, request: ListingRequest) -> bool:
        """Whether the question would come to an embedded catalogue that never had the namespace: its empty listing
        would be wrong.
        """
        try:
            version = await asyncio.to_thread(self._broker.version, request.namespace)
        except BrokerCoreError:  # of a gateway, whose cluster knows; a catalogue that fails says so itself
            return False
        return version.number == 0 and (await request.rest()).lister == "catalog"
