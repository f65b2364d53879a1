"""One request on its way through the pipeline, and the answer of its lister."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broker_core.access import Asker
from broker_core.listing import Details, Listing, Position, Selection, TopicFilter, TopicTable
from broker_core.names import NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.answer import Trace
from broker_core.pipeline.request.held_permit import HeldPermit
from broker_core.plugin_api import ListingRequest

__all__ = ["AcceptedAnswer", "ListingInProgress", "ListingTables"]


class ListingTables(Protocol):
    """The tables of listings, of the catalogue (:class:`broker_core.catalog.CatalogLister`) or a cluster."""

    @property
    def lister(self) -> str:
        """The name of the lister whose listings have tables."""

    def known(self, listing: Listing) -> tuple[TopicTable, bool] | None:
        """The result of :meth:`of`, if it is there."""

    async def of(self, listing: Listing) -> tuple[TopicTable, bool] | None:
        """The table of a listing, and whether it is kept under permits of its own; ``None`` if there is a newer one."""

    def hold(self, namespace: NamespaceName, parts: Sequence[tuple[object, int]]) -> bool: ...

    async def completed(self, table: TopicTable, asker: Asker) -> TopicTable:
        """Topics of another lister, with all known details."""


@dataclass(slots=True)
class AcceptedAnswer:
    """A lister's checked answer: topics, or (``selection`` is ``None``) that the client's hash still holds.

    ``topics_hash``, if not ``None``, is taken for the hash of exactly these topics; ``declared_hash`` is a plugin's
    own, to be compared with the computed hash. ``claimed`` is whether the lister said that it filtered, ``filtered``
    whether the core accepts it.
    """

    lister: str
    selection: Selection | None
    filtered: bool
    topics_hash: str | None
    claimed: bool = False
    #: Bytes of a listing that was built for this request alone; a shared listing is charged to its keeper.
    owned: int = 0
    declared_hash: str | None = None
    #: The age in seconds, if this is a former answer in place of a failure.
    stale: float | None = None
    #: Whether these are all topics, and not only the wanted page: a part must not be kept as the whole.
    whole: bool = True
    #: The start of the next page, of a lister that gave a page.
    next: Position | None = None
    details: Details | None = None
    #: The table of the listing, and whether it is kept under permits of its own.
    table: tuple[TopicTable, bool] | None = None
    #: The version of the listed state, if the lister gives one.
    version: str | int | None = None


@dataclass(frozen=True, slots=True)
class ListingInProgress:
    """One request on its way: with the pattern that the core applies, and its heap permits."""

    request: ListingRequest
    pattern: TopicsPattern | None
    held: HeldPermit
    trace: Trace | None
    #: The versions of plugins before the work: a plugin is asked once for each question.
    versions: dict[str, str | None] = field(default_factory=dict)
    #: Each call of ``request.rest()``, of all plugins.
    all_calls: list[str] = field(default_factory=list)
    #: The topics that rules allow the asker; ``None``: all.
    topics: TopicFilter | None = None
    #: The tables of listings, of which the asker needs that of the answer.
    tables: ListingTables | None = None
