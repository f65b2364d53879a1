"""One request on its way through the pipeline, and what a lister said to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.listing.details import Details
from broker_core.listing.listing import Selection
from broker_core.listing.page import Position
from broker_core.listing.topic_filter import TopicFilter
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.answer import Trace
from broker_core.pipeline.held_permit import HeldPermit
from broker_core.plugin_api.listing_request import ListingRequest

__all__ = ["AcceptedAnswer", "ListingInProgress", "is_of_pattern"]


def is_of_pattern(request: ListingRequest, claimed: bool, pattern: str | None) -> bool:
    """Whether an answer to the question with ``pattern`` is one to ``request`` too, which is the same but for that.

    What a plugin says that it filtered is one to that pattern alone, whatever it says that its answers depend on.
    """
    return not claimed or pattern == request.topics_pattern


@dataclass(slots=True)
class AcceptedAnswer:
    """A lister's checked answer: topics, or (``selection`` is ``None``) that the client's hash still holds.

    ``topics_hash`` is taken for that of exactly these topics where it is not ``None``; ``said_hash`` is what a plugin
    says that it is, to be compared with the one that is computed. ``claimed`` is whether the lister said that it
    filtered, ``filtered`` whether the core has seen to it.
    """

    lister: str
    selection: Selection | None
    filtered: bool
    topics_hash: str | None
    claimed: bool = False
    #: Bytes of a listing that was built for this request alone; a shared one is charged where it is kept.
    owned: int = 0
    said_hash: str | None = None
    #: Seconds since this was known to be true, where it is a former answer in place of one that failed.
    stale: float | None = None
    #: Whether these are all topics, and not the page that was asked for: a part must not be kept as the whole.
    whole: bool = True
    #: Where the next page begins, of a lister that gave a page.
    next: Position | None = None
    details: Details | None = None
    #: Of the state that this is of, where the lister tells.
    version: str | int | None = None


@dataclass(frozen=True, slots=True)
class ListingInProgress:
    """One request on its way: with the pattern that the core applies, and its heap permits."""

    request: ListingRequest
    pattern: TopicsPattern | None
    held: HeldPermit
    trace: Trace | None
    #: What plugins said before the work: a plugin is asked once for each question.
    versions: dict[str, str | None] = field(default_factory=dict)
    #: Each call of ``request.rest()``, of all plugins.
    all_calls: list[str] = field(default_factory=list)
    #: The topics that rules allow the asker; ``None``: all.
    topics: TopicFilter | None = None
