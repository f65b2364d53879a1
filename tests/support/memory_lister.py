"""A default lister in memory, which a test can hold up, let fail or change."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterable

from broker_core.listing.listing import Listing
from broker_core.names import DOMAINS, Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api.describe_request import DescribeRequest
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import PolledLister, TopicListingResult

__all__ = ["MemoryLister"]


class MemoryLister(PolledLister):
    """Full names, listed by namespace and mode. ``at_once`` is whether they are in memory as far as the core knows.

    ``asked`` are the requests that came to :meth:`list_topics`, which waits for ``gate`` and then raises ``error``, if
    there is one.
    """

    name = "catalog"
    depends_on: frozenset[str] = frozenset()

    def __init__(self, names: Iterable[str] = (), *, at_once: bool = True) -> None:
        self.names = list(names)
        self.at_once = at_once
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: BaseException | None = None
        self.asked: list[ListingRequest] = []
        self._listings: dict[tuple[NamespaceName, Mode], Listing] = {}

    def change(self, names: Iterable[str]) -> None:
        """Other names from now on."""
        self.names = list(names)
        self._listings.clear()

    def listing(self, namespace: NamespaceName, mode: Mode) -> Listing:
        """The listing, the same object each time."""
        key = (namespace, mode)
        if key not in self._listings:
            prefixes = tuple(f"{domain}://{namespace}/" for domain in DOMAINS if mode.lists(domain))
            names = [name for name in self.names if name.startswith(prefixes)]
            self._listings[key] = Listing.from_names(namespace, mode, names)
        return self._listings[key]

    def list_now(
        self,
        request: ListingRequest,
        applied: TopicsPattern | None = None,
    ) -> TopicListingResult | None:
        return self._result(request) if self.at_once else None

    def still_valid(
        self, request: ListingRequest, applied: TopicsPattern | None, listing: weakref.ref[Listing]
    ) -> Listing | None:
        result = self.list_now(request, applied)
        return listing() if result is not None and result.topics is listing() else None

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        self.asked.append(request)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self._result(request)

    async def describe(self, request: DescribeRequest) -> None:
        """No details: this lister has names alone."""

    def _result(self, request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.success(self.listing(request.namespace, request.mode), version="1")
