"""Plugins that list, describe or hide a few topics, for tests of single topics."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from broker_core import Details, TopicListingResult
from tests.support.plugins import PluginOf

__all__ = ["BASE", "LOCALS", "NAMES", "by_names", "gives", "hides"]

BASE = "persistent://t/n/"
LOCALS = ["plain", "parted-partition-0", "parted-partition-2", "x-partition-01"]
NAMES = [BASE + name for name in LOCALS]


def by_names(**fields: Any) -> PluginOf:
    """Lists :data:`NAMES`."""
    return PluginOf(list_topics=lambda: TopicListingResult.success(NAMES), **fields)


def gives(partitions: int, **fields: Any) -> PluginOf:
    """Describes every topic that it is asked about."""

    def describe(request: Any) -> Details:
        return Details.of(request.names, partitions=[partitions] * len(request.names))

    return PluginOf(describe_topics=describe, **fields)


def hides(part: str, **fields: Any) -> PluginOf:
    return PluginOf(visible=lambda topics: pc.invert(pc.match_substring(topics, part)), **fields)
