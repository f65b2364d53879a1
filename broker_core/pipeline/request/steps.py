"""The rules of a listing's steps, shared by the immediate answer and the one that waits.

They decide: which work is quick enough for the event loop; which pattern the core applies, and by which plan; whether
an answer has a hash, and whether the client's hash still matches; how much memory a request acquires first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Final

from broker_core.access import Asker
from broker_core.concurrency import EACH_BYTE, ON_LOOP
from broker_core.errors import Cause, ListingFailed
from broker_core.listing import Selection
from broker_core.memory import Permits
from broker_core.names import NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.request.pipeline_options import PipelineOptions
from broker_core.plugin_api import DefaultLister, ListingRequest

__all__ = [
    "QUICK_BYTES",
    "TINY_BYTES",
    "applied_pattern",
    "has_hash",
    "is_unchanged",
    "listing_plan",
    "matching_now",
    "names_bytes",
    "sizes_of",
    "unknown_size",
    "without_hash",
]

#: Hashing or gathering so many bytes at most is done on the event loop.
QUICK_BYTES: Final = int(ON_LOOP / EACH_BYTE)
#: The same if a turn of the loop has no time left.
TINY_BYTES: Final = 8 * 1024
#: The share of the heap permits that a plugin's answer about a new namespace is taken to need.
_UNKNOWN_SHARE: Final = 4


# -- quick work


def matching_now(
    selection: Selection, pattern: TopicsPattern, has_time: Callable[[], bool]
) -> Selection | None:
    """The matching topics, if they are known, or quick to find in a turn that has time; ``None`` otherwise."""
    known = selection.known_matching(pattern)
    if known is None and has_time() and selection.matching_is_quick(pattern):
        known = selection.matching(pattern)
    return known


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
