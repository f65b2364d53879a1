"""One request on its way through the pipeline, and what a lister said to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from broker_core.listing.details import Details
from broker_core.listing.listing import Selection
from broker_core.listing.page import Position
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.answer import Trace
from broker_core.pipeline.held_permit import HeldPermit
from broker_core.plugin_api.listing_request import ListingRequest

__all__ = ["QUICK_BYTES", "QUICK_NAMES", "AcceptedAnswer", "ListingInProgress", "listing_plan"]

#: Hashing or gathering so many bytes at most is done on the event loop (a few hundred microseconds).
QUICK_BYTES: Final = 512 * 1024
#: So many names are checked and encoded on the event loop.
QUICK_NAMES: Final = 500


@dataclass(slots=True)
class AcceptedAnswer:
    """What a lister said, checked: topics, or (``selection`` is ``None``) that the client's hash still holds.

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


def listing_plan(request: ListingRequest, pattern: TopicsPattern | None) -> str:
    """How the pattern is applied, in the words of ``explain`` and of the metrics."""
    if pattern is not None:
        return pattern.plan
    return "none" if request.pattern is None or request.pattern.supported else "unsupported"
