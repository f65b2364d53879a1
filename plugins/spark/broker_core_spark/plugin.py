"""Serve precomputed listings of known patterns: build generations, look at them and use them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker_core import HttpSite, hookimpl
from broker_core_spark.settings import SparkSettings

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel

    from broker_core import Check, ListingRequest, TopicListingResult
    from broker_core_spark.serving import PrecomputedTopicLister

__all__ = ["SparkPlugin"]


class SparkPlugin:
    """The plugin of one broker."""

    def __init__(self) -> None:
        self._lister: PrecomputedTopicLister | None = None

    @hookimpl
    def broker_core_settings(self) -> type[BaseModel]:
        return SparkSettings

    @hookimpl
    def broker_core_depends_on(self) -> Collection[str]:
        return {"pattern", "properties"}

    @hookimpl
    def broker_core_http_routes(self) -> HttpSite:
        site = HttpSite("/spark", Path(__file__).parent / "screen")
        site.screen("spark", "Spark", "spark.js")
        return site

    @hookimpl
    def broker_core_commands(self, app: typer.Typer) -> None:
        from broker_core_spark.commands import add_commands

        add_commands(app)

    @hookimpl
    def broker_core_problems(self, settings: SparkSettings) -> Collection[str]:
        from broker_core.errors import BrokerCoreError
        from broker_core_spark.store import current_pointer, open_store

        try:
            store = open_store(settings.store, settings.store_options)
            published = current_pointer(store)
            if published is not None:
                # Arrow is imported only for a generation to open.
                from broker_core_spark.serving import open_generation

                open_generation(settings, store, published.generation)
        except (BrokerCoreError, OSError) as error:
            return [str(error)]
        return []

    @hookimpl
    def broker_core_check(self, settings: SparkSettings) -> Iterable[Check]:
        from broker_core_spark.check_store import check_store

        return check_store(settings)

    @hookimpl
    async def broker_core_startup(self, broker: Any, settings: SparkSettings) -> None:
        import asyncio

        # Imports take a tenth of a second, which the event loop must not wait. The command line needs none of them.
        await asyncio.to_thread(import_module, "broker_core_spark.serving")
        from broker_core_spark.serving import PrecomputedTopicLister

        self._lister = PrecomputedTopicLister(broker, settings)
        await self._lister.refresher.start()

    @hookimpl
    def broker_core_reloaded(self, settings: SparkSettings) -> Callable[[], None]:
        return partial(self.lister.refresher.follow, settings)

    @hookimpl
    async def broker_core_shutdown(self) -> None:
        if self._lister is not None:
            await self._lister.refresher.close()

    @property
    def lister(self) -> PrecomputedTopicLister:
        """The lister of topics, once the broker has started."""
        assert self._lister is not None
        return self._lister

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        return None if self._lister is None else await self._lister.list_topics(request)


# The entry point names this module. Its functions are the hooks of one instance.
_installed = SparkPlugin()
globals().update(
    {hook: getattr(_installed, hook) for hook in dir(SparkPlugin) if hook.startswith("broker_core_")}
)
