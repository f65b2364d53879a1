"""The questions that can be watched (PIP-145): a watch has neither properties nor a flag that a pattern was applied."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker_core.access import Asker
from broker_core.listing import Listing, has_property_values
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api import PROPERTY, ListingRequest

if TYPE_CHECKING:
    from broker_core.pipeline.pipeline import Pipeline

__all__ = ["listing_of_now", "unfit_for_watches", "unwatchable_pattern"]


def unwatchable_pattern(pipeline: Pipeline, pattern: TopicsPattern | None) -> str | None:
    """The reason why a pattern cannot be watched; ``None`` if it can. A ``pattern`` of ``None`` is not known yet, or
    absent.
    """
    if not pipeline.options.patterns.evaluate:
        return "Evaluating subscription patterns is disabled."
    return None if pattern is None or pattern.supported else str(pattern.reason)


async def unfit_for_watches(pipeline: Pipeline, namespace: NamespaceName, asker: Asker) -> str | None:
    """The reason why a client that sends no properties with its watch cannot watch a namespace, if any.

    Raises :exc:`~broker_core.errors.ListingFailed`.
    """
    dispatcher, lister = pipeline.dispatcher, pipeline.lister
    plugins = dispatcher.properties_matter_to(namespace)
    if plugins:
        named = ", ".join(map(repr, plugins))
        return f"answers of {named} depend on the properties of the request, which a watch does not have"
    if "properties" in lister.depends_on:
        return "what the brokers list depends on the properties of the request, which a watch does not have"
    if any(word.startswith(PROPERTY) for word in lister.depends_on):
        listing = await listing_of_now(pipeline, namespace, Mode.PERSISTENT, asker)
        if listing is not None and has_property_values(listing):
            return (
                "topics of the namespace are selected by properties (catalog.property_keys), which a watch does "
                "not have"
            )
    return None


async def listing_of_now(
    pipeline: Pipeline, namespace: NamespaceName, mode: Mode, asker: Asker
) -> Listing | None:
    """The default lister's listing of a namespace; ``None`` if it holds none.

    Raises :exc:`~broker_core.errors.ListingFailed`.
    """
    deadline = asyncio.get_running_loop().time() + pipeline.options.time_budget
    whole = ListingRequest(namespace, mode, asker=asker, deadline=deadline)
    result = pipeline.lister.list_now(whole) or await pipeline.lister.list_topics(whole)
    return result.topics if isinstance(result.topics, Listing) else None
