"""Serve precomputed listings of known patterns: build generations, look at them and use them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from broker_core import Check, TopicListingResult, hookimpl
from broker_core_spark.serving.counters import AnswerCounts
from broker_core_spark.serving.pass_to_next_lister import PassToNextLister
from broker_core_spark.settings import SparkSettings

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel

    from broker_core import ListingRequest
    from broker_core_spark.serving.generation_refresher import GenerationRefresher
    from broker_core_spark.serving.opened.generation import Generation
    from broker_core_spark.serving.served_generation import ServedGeneration

__all__ = ["SparkPlugin"]

#: Seconds that the start of the broker waits for the first generation; questions are passed on until it is checked.
_PATIENCE: Final = 30.0


def _import_serving() -> None:
    """Not needed by the command line, which loads plugins for their settings and commands."""
    import broker_core_spark.serving.answer_cache
    import broker_core_spark.serving.changes.change_log_finder
    import broker_core_spark.serving.generation_refresher
    import broker_core_spark.serving.metrics
    import broker_core_spark.serving.served_generation  # noqa: F401


class SparkPlugin:
    """The plugin of one broker."""

    def __init__(self) -> None:
        self.tally = AnswerCounts()
        self._shelf: GenerationRefresher | None = None
        self._selecting: frozenset[str] | None = None

    @hookimpl
    def broker_core_settings(self) -> type[BaseModel]:
        return SparkSettings

    @hookimpl
    def broker_core_depends_on(self) -> Collection[str]:
        return {"pattern", "properties"}

    @hookimpl
    def broker_core_commands(self, app: typer.Typer) -> None:
        from broker_core_spark.commands import add_commands

        add_commands(app)

    @hookimpl
    def broker_core_problems(self, settings: SparkSettings) -> Collection[str]:
        from broker_core.errors import BrokerCoreError
        from broker_core_spark.serving.generation_refresher import open_generation
        from broker_core_spark.store import open_store
        from broker_core_spark.store.published_pointers import current_pointer

        try:
            store = open_store(settings.store, settings.store_options)
            published = current_pointer(store)
            if published is not None:
                open_generation(settings, store, published.generation)
        except (BrokerCoreError, OSError) as error:
            return [str(error)]
        return []

    @hookimpl
    def broker_core_check(self, settings: SparkSettings) -> Iterable[Check]:
        from broker_core_spark.checks import check_store

        return check_store(settings)

    @hookimpl
    async def broker_core_startup(self, broker: Any, settings: SparkSettings) -> None:
        # In a thread, for it takes a tenth of a second and the event loop has other things to do.
        await asyncio.to_thread(_import_serving)
        from broker_core_spark.serving.answer_cache import AnswerCache
        from broker_core_spark.serving.changes.change_log_finder import ChangeLogFinder
        from broker_core_spark.serving.generation_refresher import GenerationRefresher
        from broker_core_spark.serving.metrics import ServingMetrics
        from broker_core_spark.serving.served_generation import FollowOptions, ServedGeneration

        answers = AnswerCache(settings.answers)
        options = FollowOptions(
            overlay_limit=settings.overlay_limit,
            source_timeout=settings.source_timeout,
            static=settings.static,
            max_stale=settings.max_stale if settings.on_failure == "stale" else None,
        )

        def serve(generation: Generation) -> ServedGeneration:
            log = ChangeLogFinder(broker.change_logs, timeout=settings.source_timeout)
            return ServedGeneration(generation, log, answers, options)

        self.tally = AnswerCounts()
        self._selecting = broker.selecting_keys
        self._shelf = GenerationRefresher(settings, serve, self.tally, broker.report_problems)
        broker.metrics_registry.register(ServingMetrics(self._shelf, self.tally, answers))
        await self._shelf.start(_PATIENCE)

    @hookimpl
    async def broker_core_shutdown(self) -> None:
        shelf, self._shelf = self._shelf, None
        if shelf is not None:
            await shelf.close()

    @property
    def shelf(self) -> GenerationRefresher:
        """What is served, while the broker runs."""
        assert self._shelf is not None
        return self._shelf

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        served = None if self._shelf is None else self._shelf.served
        if served is None:
            self.tally.passed_on("no_generation")
            return None
        try:
            answer = await served.answer(request, self._selecting)
        except PassToNextLister as passed:
            self.tally.passed_on(passed.reason)
            return None
        same = request.topics_hash == answer.topics_hash
        self.tally.answered("stale" if answer.stale else "unchanged" if same else "served")
        # Also where the client has them: the broker compares by its own hash of the very topics.
        return TopicListingResult.success(
            answer.selection,
            filtered=request.pattern is not None,
            topics_hash=answer.topics_hash,
            version=answer.version,
        )


# The plugin of a process that was started for one broker: its entry point names this module.
_installed = SparkPlugin()
broker_core_settings = _installed.broker_core_settings
broker_core_depends_on = _installed.broker_core_depends_on
broker_core_commands = _installed.broker_core_commands
broker_core_check = _installed.broker_core_check
broker_core_problems = _installed.broker_core_problems
broker_core_startup = _installed.broker_core_startup
broker_core_shutdown = _installed.broker_core_shutdown
broker_core_list_topics = _installed.broker_core_list_topics
