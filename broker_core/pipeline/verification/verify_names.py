"""Checking the names that a lister returned, and making a selection of them.

docs/explanation/promises.md#plugins-cannot-hurt-the-broker
"""

from __future__ import annotations

import re
import sys
from enum import Enum
from typing import Any

import pyarrow as pa

from broker_core.listing import Listing, Selection
from broker_core.names import Mode
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.verification.bad_topics import bad_topics
from broker_core.plugin_api import ListingRequest, TopicListingResult

__all__ = ["VerifyFiltered", "built", "claim_sample", "given_bytes", "known_selection", "own_hash"]

#: Up to so many names a sample is all of them; of more, so many evenly spaced ones.
SAMPLE_ALL = 10_000
SAMPLE_OF_MORE = 1_000

_HASH = re.compile("[0-9a-f]{8}")
#: Names of a list that are looked at to know about how much memory all of it takes.
_SIZED = 64


class VerifyFiltered(Enum):
    """The policies of checking a plugin's ``filtered=True``."""

    ALWAYS = "always"
    SAMPLE = "sample"
    NEVER = "never"


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


def given_bytes(topics: Any) -> int:
    """The approximate bytes of the names as a lister returned them: a sequence of strings or an Arrow column."""
    if isinstance(topics, pa.Array | pa.ChunkedArray):
        return int(topics.nbytes)
    if not len(topics):
        return 0
    step = max(1, len(topics) // _SIZED)
    sample = topics[::step]
    # An object that is no string is refused later; its own ``__sizeof__`` is not called.
    total = sum(sys.getsizeof(name) for name in sample if type(name) is str)
    return len(topics) * (8 + total // len(sample))


def built(request: ListingRequest, names: pa.LargeStringArray) -> Listing:
    """The listing of the names that a lister returned. Raises :exc:`InvalidListing` for the first bad one."""
    return Listing.from_names(request.namespace, request.mode, names)


def own_hash(result: TopicListingResult, selection: Selection, returned: int) -> str | None:
    """The lister's hash if it should be that of exactly these topics (none collapsed, none hidden)."""
    given = result.topics_hash
    if given is None:
        return None
    given = str.__str__(given)
    if _HASH.fullmatch(given) is None:
        raise bad_topics(f"returned a topics hash that is none: {given[:40]!r} (8 lower-case hex digits)")
    return given if len(selection) == returned else None


def claim_sample(selection: Selection, pattern: TopicsPattern, policy: VerifyFiltered) -> Selection | None:
    """The topics that must all match if the lister's ``filtered=True`` is right; ``None``: the policy checks none."""
    if policy is VerifyFiltered.NEVER or selection.pattern == pattern.text:
        return None
    if policy is VerifyFiltered.ALWAYS or len(selection) <= SAMPLE_ALL:
        return selection.as_claim()
    return selection.sampled(SAMPLE_OF_MORE)
