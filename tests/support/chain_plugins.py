"""Plugins for tests of the chain: one asks the rest of the chain, one lists, one fails."""

from __future__ import annotations

from typing import Any

from broker_core import ListingRequest, RestAnswer, TopicListingResult
from tests.support.plugins import PluginOf

__all__ = ["A", "B", "C", "asks", "fails", "lists", "lists_nothing", "success"]

A, B, C = (f"persistent://t/n/{name}" for name in "abc")
success = TopicListingResult.success


def asks(*, depends_on: tuple[str, ...] = (), seen: list[RestAnswer] | None = None, **given: Any) -> PluginOf:
    """Answers what is behind it."""

    async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        answer = await request.rest(**given)
        if seen is not None:
            seen.append(answer)
        return success(answer.selection, filtered=answer.filtered)

    return PluginOf(list_topics=broker_core_list_topics, depends_on=lambda: depends_on)


def lists(*topics: str, on: tuple[str, ...] = (), **options: Any) -> PluginOf:
    async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        return success(list(topics), **options)

    return PluginOf(list_topics=broker_core_list_topics, depends_on=lambda: on)


def fails(error: BaseException) -> PluginOf:
    async def broker_core_list_topics() -> None:
        raise error

    return PluginOf(list_topics=broker_core_list_topics)


def lists_nothing() -> PluginOf:
    return PluginOf(list_topics=lambda: None)
