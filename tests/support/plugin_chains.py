"""Chains of plugins that list and mask three topics, without a server."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from broker_core import ListingRequest, TopicListingResult
from broker_core.plugins import Dispatcher, PluginFailed, PluginRegistry
from tests.support.plugins import PluginOf, asked

__all__ = ["PASS", "SUCCESS", "TOPICS", "answers", "dispatcher", "lists", "masks"]

TOPICS = pa.array([f"persistent://acme/orders/{n}" for n in "abc"], pa.large_string())
SUCCESS = TopicListingResult.success(["persistent://acme/orders/a"])
PASS = TopicListingResult.pass_through()


def dispatcher(
    plugins: dict[str, object], tables: dict[str, dict[str, object]] | None = None, **options: Any
) -> Dispatcher:
    """The plugins of these names, in their order, with their tables of the settings."""
    return Dispatcher(PluginRegistry.load(tables=tables, given=plugins), **options)


def lists(answer: object) -> PluginOf:
    """A plugin that lists so; raises an exception."""

    async def function(request: ListingRequest) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return PluginOf(list_topics=function)


def masks(answer: object) -> PluginOf:
    """A plugin that masks so; raises an exception."""

    def function(topics: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return PluginOf(visible=function)


async def answers(chain: Dispatcher, request: ListingRequest | None = None) -> list[tuple[str, str]]:
    """What each lister of a chain answered, as far as they were asked."""
    try:
        steps = (await chain.lister_hook.ask(request or asked())).steps
    except PluginFailed as failure:
        steps = failure.steps
    return [(step.plugin, step.answer) for step in steps]
