"""Chains of plugins that list and mask three topics, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from broker_core import ListingRequest, TopicListingResult
from broker_core.errors import ListingFailed
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.pipeline import Answer, Pipeline, Trace
from broker_core.plugins import ChainStep, Dispatcher, PluginRegistry
from tests.support.memory_lister import MemoryLister
from tests.support.plugins import PluginOf, asked

__all__ = ["PASS", "SUCCESS", "TOPICS", "answers", "dispatcher", "listed", "lists", "masks"]

TOPICS = pa.array([f"persistent://acme/orders/{n}" for n in "abc"], pa.large_string())
SUCCESS = TopicListingResult.success(["persistent://acme/orders/a"])
PASS = TopicListingResult.pass_through()


def dispatcher(
    plugins: Mapping[str, object],
    tables: Mapping[str, Mapping[str, object]] | None = None,
    **options: Any,
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
    _, steps = await listed(chain, request)
    return [(step.plugin, step.answer) for step in steps]


async def listed(
    chain: Dispatcher, request: ListingRequest | None = None
) -> tuple[Answer | ListingFailed, list[ChainStep]]:
    """The answer of a pipeline with this chain, or its failure, and the steps of the chain."""
    pipeline, trace = Pipeline(MemoryLister(), chain, Permits(), Metrics()), Trace()
    try:
        answer = await pipeline.answer(request or asked(), trace)
        answer.release()
    except ListingFailed as failure:
        return failure, trace.chain
    finally:
        pipeline.close()
    return answer, trace.chain
