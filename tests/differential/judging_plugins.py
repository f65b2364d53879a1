"""Plugins of both servers: a lister with details, one without, one that fails, a mask and a gate.

The file is copied into a folder of its own, from which both servers load it: it needs nothing of this repository but
what plugins of 0.1.0 may import.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker_core import (
    Access,
    DescribeRequest,
    Details,
    ListingRequest,
    Refused,
    TopicListingResult,
    hookimpl,
)

__all__ = ["Failing", "Gate", "Lister", "Mask", "NamesOnly"]

#: The namespaces that plugins answer, each by one of them.
DESCRIBED, NAMES_ONLY, FAILING = "plug/described", "plug/names", "plug/fails"

_TOPICS = {f"persistent://{DESCRIBED}/topic-{number}": number % 4 for number in range(24)}


def _names(topic: str, partitions: int) -> list[str]:
    return [f"{topic}-partition-{number}" for number in range(partitions)] or [topic]


class Lister:
    """Lists a namespace, and describes its topics."""

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        if str(request.namespace) != DESCRIBED:
            return None
        return TopicListingResult.success(
            [name for topic, partitions in _TOPICS.items() for name in _names(topic, partitions)]
        )

    @hookimpl
    async def broker_core_describe_topics(self, request: DescribeRequest) -> Details | None:
        if str(request.namespace) != DESCRIBED:
            return None
        wanted = [] if request.names is None else request.names.to_pylist()
        found = [topic for topic in wanted if topic in _TOPICS]
        return Details.of(found, partitions=[_TOPICS[topic] for topic in found])


class NamesOnly:
    """Lists a namespace by names, of which the properties of the question choose."""

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        if str(request.namespace) != NAMES_ONLY:
            return None
        region = request.properties.get("region", "eu")
        return TopicListingResult.success(
            [f"persistent://{NAMES_ONLY}/{region}-{number}-partition-{number % 2}" for number in range(20)]
        )


class Failing:
    """Lists a namespace never."""

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> None:
        if str(request.namespace) == FAILING:
            raise RuntimeError("the lister is broken")


class Mask:
    """Hides topics with ``hidden`` in their names from all roles but one; it may be kept by its version."""

    @hookimpl
    def broker_core_depends_on(self) -> tuple[str, ...]:
        return ("principal",)

    @hookimpl
    def broker_core_version(self, request: ListingRequest) -> str:
        return "1"

    @hookimpl
    def broker_core_visible(self, request: ListingRequest, topics: pa.LargeStringArray) -> Any:
        return None if request.asker.role == "admin" else pc.invert(pc.match_substring(topics, "hidden"))


class Gate:
    """Refuses access to topics with ``gated`` in their names, to one role lookups of all, to another one changes."""

    @hookimpl
    def broker_core_depends_on(self) -> tuple[str, ...]:
        return ()

    @hookimpl
    def broker_core_authorize(self, access: Access) -> Refused | None:
        topic = "" if access.topic is None else str(access.topic)
        if "gated" in topic and access.asker.role != "admin":
            return Refused(f"{access.action} of {topic} is closed")
        if access.asker.role == "bob" and access.action == "schema":
            return Refused("no schemas for bob")
        if access.asker.role == "ann" and access.action == "admin" and "-7" in topic:
            return Refused(f"ann leaves {topic} alone")
        return None


lister, names_only, failing, mask, gate = Lister(), NamesOnly(), Failing(), Mask(), Gate()
