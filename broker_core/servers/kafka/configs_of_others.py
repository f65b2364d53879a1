"""The configs of topics that others than the catalogue list, as plugins tell them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import re2

from broker_core.kafka.configs import sound_configs
from broker_core.listing.details import TOPIC, Details
from broker_core.names import PERSISTENT, Mode, TopicName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.kafka.caller import Caller

__all__ = ["configs_of_others"]

#: Names that are asked for by a pattern; for more, the whole namespace is listed.
_FEW: Final = 100
_WANTS: Final = frozenset({"configs"})


async def configs_of_others(
    pipeline: Pipeline, caller: Caller, names: Sequence[str]
) -> Mapping[str, Mapping[str, str]]:
    """By local name the configs of those topics of which some are known; those that Kafka would refuse are left out.

    Raises :exc:`~broker_core.errors.ListingFailed`.
    """
    by_topic = {str(TopicName(PERSISTENT, caller.namespace, name)): name for name in names}
    request = ListingRequest(
        caller.namespace, Mode.PERSISTENT, asker=caller.asker, deadline=caller.deadline, wants=_WANTS
    )
    pattern = None
    if len(names) <= _FEW:
        pattern = f"{PERSISTENT}://{caller.namespace}/(?:{'|'.join(map(re2.escape, names))})"
    answer = await pipeline.answer(request, topics_pattern=pattern)
    try:
        details = answer.details
        if details is None or "configs" not in details.columns:
            return {}
        rows = await asyncio.to_thread(_known, details, list(by_topic))
        return {by_topic[topic]: configs for topic, configs in rows.items()}
    finally:
        answer.release()


def _known(details: Details, topics: Sequence[str]) -> dict[str, dict[str, str]]:
    asked = pc.is_in(details.topics, value_set=pa.array(topics, pa.large_string()))
    batch = details.batch.filter(pc.and_(asked, pc.is_valid(details.column("configs"))))
    return {row[TOPIC]: sound_configs(row["configs"]) for row in Details(batch).to_pylist()}
