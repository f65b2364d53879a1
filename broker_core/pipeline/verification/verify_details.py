"""Checking the details that plugins give: each value, and that each row is about a topic of the question."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidListing, ListingFailed
from broker_core.listing import Details, Listing, Selection, check_values
from broker_core.names import Mode, split_partitions
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.verification.bad_topics import bad_topics

__all__ = ["CHECK_FACTOR", "check_details", "check_listed_details", "details_of"]

#: Bytes that checking takes, by bytes of the details and of the names that they are about.
CHECK_FACTOR: Final = 3


def check_details(details: Details, wants: Collection[str], names: pa.LargeStringArray | None) -> None:
    """Raise :exc:`ListingFailed` for a wrong value, and for a topic that is not among ``names``, if given."""
    try:
        check_values(details, wants)
    except (ValueError, pa.ArrowException) as error:
        raise bad_topics(f"gave wrong details: {error}") from None
    if names is not None:
        _refuse_others(details, names, "was not asked about")


def check_listed_details(
    details: Details, wants: Collection[str], selection: Selection, pattern: TopicsPattern | None = None
) -> Details:
    """Check details that came with topics; returns those of the listed topics.

    A topic that ``pattern`` takes away may have a row, and one that brokers keep for themselves: a lister gives the
    details of all that it read from its store, and only the names are filtered.
    """
    check_details(details, wants, None)
    listed = _are_of(details, selection)
    if not listed.false_count:
        return details
    unlisted = details.topics.filter(pc.invert(listed))
    try:
        visible = Listing.from_names(selection.listing.namespace, Mode.ALL, unlisted).all()
    except InvalidListing:
        raise _unlisted(unlisted[0]) from None
    if pattern is not None and pattern.supported:
        visible = visible.matching(pattern)
    if len(visible):
        raise _unlisted(visible.names[0])
    return Details(details.batch.filter(listed))


def details_of(details: Details, selection: Selection) -> Details:
    """The details of the topics of a selection alone; takes as much memory as :data:`CHECK_FACTOR` says."""
    listed = _are_of(details, selection)
    return Details(details.batch.filter(listed)) if listed.false_count else details


def _are_of(details: Details, selection: Selection) -> Any:
    """A mask of the details that are of topics of a selection."""
    return pc.is_in(details.topics, value_set=split_partitions(selection.names)[0])


def _refuse_others(details: Details, names: pa.LargeStringArray, what: str) -> None:
    known = pc.is_in(details.topics, value_set=names)
    if known.false_count:
        raise _about(details.topics.filter(pc.invert(known))[0], what)


def _unlisted(topic: Any) -> ListingFailed:
    return _about(topic, "it did not list")


def _about(topic: Any, what: str) -> ListingFailed:
    return bad_topics(f"gave details of {topic.as_py()[:200]!r}, which {what}")
