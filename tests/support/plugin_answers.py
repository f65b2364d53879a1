"""Plugins that answer as a test says, and one question to a server that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from broker_core import ListingRequest, TopicListingResult
from tests.support.memory_lister import MemoryLister
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import Serving, serving

__all__ = [
    "NAMESPACE",
    "STORED",
    "A",
    "Ask",
    "B",
    "C",
    "answering",
    "asked",
    "masking",
    "raising",
    "success",
    "topics",
]

NAMESPACE = "t/n"
STORED = [f"persistent://t/n/stored-{number}" for number in range(4)]
A, B, C = (f"persistent://t/n/{letter}" for letter in "abc")
Ask = Callable[..., Any]

success = TopicListingResult.success


def answering(answer: Any) -> PluginOf:
    """A plugin that lists by ``answer``: what it returns, or a function of the request that gives that."""

    async def broker_core_list_topics(request: ListingRequest) -> Any:
        return answer(request) if callable(answer) else answer

    return PluginOf(list_topics=broker_core_list_topics)


def masking(mask: Callable[[Any], Any]) -> PluginOf:
    """A plugin that hides topics."""

    async def broker_core_visible(request: ListingRequest, topics: Any) -> Any:
        return mask(topics)

    return PluginOf(visible=broker_core_visible)


async def asked(
    plugins: Mapping[str, object],
    *,
    tables: Mapping[str, Mapping[str, object]] | None = None,
    then: Callable[[Serving], None] | None = None,
    **question: Any,
) -> Any:
    """One listing through a server with these plugins."""
    mode = question.pop("mode", 0)
    async with serving(MemoryLister(STORED), plugins, tables=tables) as s, await s.client() as client:
        try:
            return await client.ask(NAMESPACE, mode, **question)
        finally:
            await client.ping()
            if then is not None:
                then(s)


def topics(answer: Any) -> list[str]:
    return sorted(answer.topics)


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail
