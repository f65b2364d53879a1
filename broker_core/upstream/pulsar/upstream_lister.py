"""The cluster's own listing, for questions that no plugin answers."""

from __future__ import annotations

import asyncio
import math
import weakref
from typing import Final

from broker_core.access import Asker
from broker_core.client import LookupSession, TopicsAnswer
from broker_core.concurrency import in_thread
from broker_core.guards import ShrinkGuard
from broker_core.listing import Listing
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api import (
    DescribeRequest,
    ListerNotes,
    ListingRequest,
    PolledLister,
    TopicListingResult,
    question_text,
)
from broker_core.upstream.pulsar.broker_failures import broker_failures
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.upstream.snapshots import ONE_BROKER

__all__ = ["UpstreamLister"]

_LARGE: Final = 64 * 1024  # bytes; a column of more is made in a thread
_NAMES_AND_COLUMN: Final = (
    2  # an answer is held as it came while its column of names, about as large, is made
)


class UpstreamLister(PolledLister):
    """Asks the brokers for a client: pattern, hash and properties are forwarded, and its principal if the settings say
    so.

    Any failure is a :exc:`~broker_core.errors.ListingFailed`, never an empty listing. An answer of more than 64 KiB is
    read only once there are heap permits for it, so that the number of clients does not decide how much memory is used.
    """

    name: Final = "upstream"

    def __init__(
        self, connections: UpstreamConnections, options: UpstreamOptions, guard: ShrinkGuard | None = None
    ) -> None:
        self._connections = connections
        self._guard = guard
        upstream = options.upstream
        self._sends_properties: Final = (
            upstream.snapshots.mode == "off" or "properties" in upstream.listing_depends_on
        )
        #: All that the brokers get: the client's principal too if an identity is passed on.
        self.depends_on: Final = frozenset(
            {"pattern"}
            | ({"properties"} if self._sends_properties else set())
            | ({"principal"} if connections.forwards else set())
        )
        self._options = options
        self._places = asyncio.Semaphore(options.listings)

    def list_now(
        self,
        request: ListingRequest,  # noqa: ARG002  # the protocol's
        applied: TopicsPattern | None = None,  # noqa: ARG002
    ) -> TopicListingResult | None:
        """``None``: nothing is known here without asking."""
        return None

    def still_valid(
        self,
        request: ListingRequest,  # noqa: ARG002
        applied: TopicsPattern | None,  # noqa: ARG002
        listing: weakref.ref[Listing],  # noqa: ARG002
    ) -> Listing | None:
        """``None``: only the brokers know."""
        return None

    def place(self, namespace: NamespaceName, asker: Asker) -> None:
        """``None``: the brokers are asked each time."""

    def period(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> float | None:  # noqa: ARG002
        """Infinite: the brokers are asked, and report no changes."""
        return math.inf

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        """The answer of the brokers, by the request's deadline. Raises :exc:`ListingFailed`."""
        loop = asyncio.get_running_loop()
        by = min(request.deadline, loop.time() + self._options.listing_timeout)
        with broker_failures(self._connections):
            async with asyncio.timeout_at(by), self._places:
                answer = await self._ask(request, request.topics_hash)
                if not answer.changed and not answer.filtered and request.pattern is not None:
                    # The brokers did not evaluate the pattern, so "unchanged" is about the whole namespace, not about
                    # the topics that match.
                    answer = await self._ask(request, None)
                if not answer.changed:
                    assert request.topics_hash is not None
                    return TopicListingResult.unchanged(request.topics_hash)
                large = answer.size > _LARGE
                names = await in_thread(request.namespace, answer.column) if large else answer.column()
        # Of non-persistent topics, another broker has others: their number says nothing.
        if self._guard is not None and request.mode is Mode.PERSISTENT:
            question = question_text(request, self.depends_on | {"pattern"})
            self._guard.check(request.namespace, question, len(names))
        return TopicListingResult.success(names, filtered=answer.filtered, topics_hash=answer.topics_hash)

    def notes(self, request: ListingRequest) -> ListerNotes:
        """A note that non-persistent topics are those of the one broker that was asked."""
        return ListerNotes(warnings=() if request.mode is Mode.PERSISTENT else (ONE_BROKER,))

    async def describe(self, request: DescribeRequest) -> None:  # noqa: ARG002  # the protocol's
        """``None``: brokers give nothing but names over this protocol."""
        return

    async def _ask(self, request: ListingRequest, topics_hash: str | None) -> TopicsAnswer:
        async def admit(size: int) -> None:
            await request.reserve(_NAMES_AND_COLUMN * size)

        async def ask(client: LookupSession) -> TopicsAnswer:
            return await client.get_topics(
                str(request.namespace),
                request.mode,
                request.topics_pattern,
                topics_hash,
                request.properties if self._sends_properties else {},
                timeout=self._options.listing_timeout,
                admit=admit,
            )

        return await self._connections.use(request.asker, ask)
