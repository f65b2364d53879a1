"""Serve precomputed listings of known patterns: build generations, look at them and use them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from broker_core import TopicListingResult, hookimpl
from broker_core_spark.settings import SparkSettings

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["SparkPlugin"]


class SparkPlugin:
    """The plugin of one broker."""

    def __init__(self) -> None:
        self._settings: SparkSettings | None = None

    @hookimpl
    def broker_core_settings(self) -> type[BaseModel]:
        return SparkSettings

    @hookimpl
    def broker_core_depends_on(self) -> Collection[str]:
        return {"pattern", "properties"}

    @hookimpl
    async def broker_core_startup(self, settings: SparkSettings) -> None:
        self._settings = settings

    @hookimpl
    async def broker_core_shutdown(self) -> None:
        self._settings = None

    @hookimpl
    async def broker_core_list_topics(self) -> TopicListingResult | None:
        return None


# The plugin of a process that was started for one broker: its entry point names this module.
_installed = SparkPlugin()
broker_core_settings = _installed.broker_core_settings
broker_core_depends_on = _installed.broker_core_depends_on
broker_core_startup = _installed.broker_core_startup
broker_core_shutdown = _installed.broker_core_shutdown
broker_core_list_topics = _installed.broker_core_list_topics
