"""The rules of a listing's steps, shared by the immediate answer and the one that waits, and the operator's options.

They decide: which listing can be taken as it is; which pattern the core applies, and by which plan; whether an answer
has a hash, and whether the client's hash still matches; how much memory a request acquires first.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Final

from broker_core.access import Asker
from broker_core.concurrency import EACH_BYTE, ON_LOOP
from broker_core.errors import Cause, ListingFailed
from broker_core.listing import Listing, Selection
from broker_core.memory import Permits
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api import DefaultLister, ListingRequest, TopicListingResult
from broker_core.settings import PatternsSettings

__all__ = [
    "QUICK_BYTES",
    "TINY_BYTES",
    "PipelineOptions",
    "applied_pattern",
    "bad_topics",
    "has_hash",
    "is_unchanged",
    "known_selection",
    "listing_plan",
    "names_bytes",
    "sizes_of",
    "unknown_size",
    "without_hash",
]

#: Hashing or gathering so many bytes at most is done on the event loop.
QUICK_BYTES: Final = int(ON_LOOP / EACH_BYTE)
#: The most bytes of it if a turn of the loop has no time left.
TINY_BYTES: Final = 8 * 1024
#: The share of the heap permits that a plugin's answer about a new namespace is taken to need.
_UNKNOWN_SHARE: Final = 4


# -- the listing


def bad_topics(what: str, plugin: str | None = None) -> ListingFailed:
    """The fault of an answer, as a verb with its object; the caller puts the plugin's name in front,
    unless ``plugin`` is given.
    """
    return ListingFailed(what, cause=Cause.PLUGIN, reason="bad_topics", plugin=plugin)


def known_selection(result: TopicListingResult, request: ListingRequest) -> Selection | None:
    """The selection of an answer that is already a listing (checked when it was built), else ``None``.

    Raises :exc:`ListingFailed` if it is of another namespace or mode.
    """
    topics = result.topics
    # By their exact types: a subclass may override anything.
    if type(topics) is Listing:
        listing, selection = topics, topics.all()
    elif type(topics) is Selection:
        listing, selection = topics.listing, topics
    else:
        return None
    # A listing of one domain is a part of all; its order is the same.
    if listing.namespace != request.namespace or request.mode not in (listing.mode, Mode.ALL):
        raise bad_topics(
            f"returned a listing of {listing.namespace} {listing.mode.name} to a question about "
            f"{request.namespace} {request.mode.name}",
        )
    return selection


# -- the pattern


def applied_pattern(request: ListingRequest, options: PipelineOptions) -> TopicsPattern | None:
    """The pattern that the core applies to a request, if any. Raises :exc:`ListingFailed` if the settings refuse it."""
    pattern = request.pattern
    if pattern is None or not options.patterns.evaluate:
        return None
    if pattern.supported:
        return pattern
    if options.patterns.unsupported == "error":
        raise ListingFailed(
            f"Unsupported topics pattern {request.topics_pattern!r:.400}: {pattern.reason}",
            cause=Cause.PATTERN,
            reason="bad_pattern",
        )
    return None


def listing_plan(
    request: ListingRequest, pattern: TopicsPattern | None, *, filtered_by_lister: bool = False
) -> str:
    """The way in which the pattern is applied, in the words of ``explain`` and of the metrics."""
    if filtered_by_lister:
        return "lister"
    if pattern is not None:
        return pattern.plan
    return "none" if request.pattern is None or request.pattern.supported else "unsupported"


# -- the hash


def has_hash(request: ListingRequest) -> bool:
    """Whether the answer has a hash: one of all names, and of nothing but names."""
    return request.page is None and not request.wants


def without_hash(request: ListingRequest) -> ListingRequest:
    """The request without the client's hash, for a lister that must not compare it."""
    return request if request.topics_hash is None else replace(request, topics_hash=None)


def is_unchanged(request: ListingRequest, topics_hash: str) -> bool:
    """Whether the client's hash still holds, so that no names are sent."""
    return topics_hash == request.topics_hash


# -- memory


def names_bytes(selection: Selection) -> int:
    """The bytes of a column of the names while it is made: the names, and their offsets twice."""
    return selection.fields_size + 16 * len(selection)


def sizes_of(lister: DefaultLister, namespace: NamespaceName, asker: Asker) -> Hashable:
    """The key by which sizes of listings are learned: a namespace, and the principal if brokers list for principals."""
    principal = (asker.role, asker.original_principal) if "principal" in lister.depends_on else None
    return (namespace, principal)


def unknown_size(permits: Permits) -> int:
    """The bytes that a plugin's answer is taken to need before the first one is known.

    An answer is in memory before it can be counted, so few are asked for at a time while their size is unknown.
    """
    return permits.heap.maximum // _UNKNOWN_SHARE


@dataclass(slots=True)
class PipelineOptions:
    """Options of the pipeline, from the settings.

    ``patterns`` is the table of settings; ``time_budget`` is in seconds, for permits, chain and the start of the
    write together, and below the 30 s that clients wait. ``selecting_keys`` are the properties that are counted in
    :attr:`Pipeline.questions`. ``guarded`` is a plugin that holds its own listings, as default listers do.
    """

    patterns: PatternsSettings = field(default_factory=PatternsSettings)
    time_budget: float = 28.0
    selecting_keys: frozenset[str] = frozenset()
    guarded: str | None = None

    def is_long(self, request: ListingRequest) -> bool:
        """Whether a pattern is too long to be compiled, and so to be worth remembering."""
        return request.pattern is not None and len(request.pattern.raw) > self.patterns.max_length
