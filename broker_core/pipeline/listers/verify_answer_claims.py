"""Checking the listings, the details, the pages and the hashes that plugins give.

Each value is checked, and that each row is about a topic of the question; a page is distinguished from a whole listing.
A wrong hash refuses no answer: it is reported, and the server sends its own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.counted import counted
from broker_core.errors import InvalidListing, ListingFailed
from broker_core.listing import (
    Details,
    Listing,
    Page,
    Position,
    Selection,
    check_values,
    first_out_of_order,
    in_page_order,
)
from broker_core.names import Mode, TopicName, split_partitions
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.answer import bad_topics
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.plugins import Dispatcher

__all__ = [
    "CHECK_FACTOR",
    "check_details",
    "check_hash",
    "check_listed_details",
    "check_order",
    "check_page",
    "details_of",
    "surely_whole",
]

#: Bytes that checking takes, by bytes of the details and of the names that they are about.
CHECK_FACTOR: Final = 3


def check_details(details: Details, wants: Collection[str], names: pa.LargeStringArray | None) -> None:
    """Raise :exc:`ListingFailed` for a wrong value, and for a topic that is not among ``names``, if given."""
    try:
        check_values(details, wants)
    except (ValueError, pa.ArrowException) as error:
        raise bad_topics(f"gave wrong details: {error}") from None
    known = None if names is None else pc.is_in(details.topics, value_set=names)
    if known is not None and known.false_count:
        raise _about(details.topics.filter(pc.invert(known))[0], "was not asked about")


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
        raise _about(unlisted[0], "it did not list") from None
    if pattern is not None and pattern.supported:
        visible = visible.matching(pattern)
    if len(visible):
        raise _about(visible.names[0], "it did not list")
    return Details(details.batch.filter(listed))


def details_of(details: Details, selection: Selection) -> Details:
    """The details of the topics of a selection alone; takes as much memory as :data:`CHECK_FACTOR` says."""
    listed = _are_of(details, selection)
    return Details(details.batch.filter(listed)) if listed.false_count else details


def _are_of(details: Details, selection: Selection) -> Any:
    """A mask of the details that are of topics of a selection."""
    return pc.is_in(details.topics, value_set=split_partitions(selection.names)[0])


def _about(topic: Any, what: str) -> ListingFailed:
    return bad_topics(f"gave details of {topic.as_py()[:200]!r}, which {what}")


def check_hash(
    dispatcher: Dispatcher,
    progress: ListingInProgress,
    accepted: AcceptedAnswer,
    topics_hash: str,
    count: int,
) -> None:
    """Report a plugin's hash that is not ``topics_hash``, that of all ``count`` topics which the plugin listed."""
    if accepted.declared_hash != topics_hash:
        dispatcher.false_claim(
            accepted.lister, count, "plugin gave a wrong topics hash; the server computes it"
        )
        if progress.trace is not None:
            progress.trace.false_claims.append(
                f"plugin {accepted.lister!r} gave the topics hash {accepted.declared_hash!r}, but that of its topics "
                f"is {topics_hash!r}: the server sends that"
            )


def check_order(names: pa.LargeStringArray) -> None:
    """Raise :exc:`ListingFailed` unless full names ascend in the order of pages, each once."""
    at = first_out_of_order(names)
    if at is not None:
        raise bad_topics(
            f"returned a page out of order: {_shown(names[at])} is in front of {_shown(names[at + 1])} (a page has the "
            "order of the names without partition by UTF-16 units, then of the partitions)"
        )


def check_page(selection: Selection, page: Page, following: Position) -> None:
    """Raise :exc:`ListingFailed` for topics that are not a page before ``following``."""
    if len(selection) > page.limit:
        raise bad_topics(f"returned {counted(len(selection), 'topic')} for a page of {page.limit}")
    if TopicName.parse(following.base).namespace != selection.listing.namespace:
        raise bad_topics(
            f"says that the next page of {selection.listing.namespace} begins at {_at(following)}"
        )
    if page.start is not None and following <= page.start:
        raise bad_topics(
            f"says that the next page begins at {_at(following)}, and this one at {_at(page.start)}"
        )
    if not len(selection):
        # Such pages might never come to an end: the position could grow for ever.
        raise bad_topics(
            f"returned no topic, and says that the next page begins at {_at(following)}: a page that is followed by "
            "another one has at least one topic"
        )
    ordered = in_page_order(selection.names)
    first, last = (Position.of(ordered[at].as_py()) for at in (0, -1))
    if page.start is not None and first < page.start:
        raise bad_topics(f"returned {_at(first)} for a page that begins at {_at(page.start)}")
    if not last < following:
        raise bad_topics(f"returned {_at(last)}, and says that the next page begins at {_at(following)}")


def surely_whole(selection: Selection, page: Page | None) -> bool:
    """Whether topics without a next page cannot be a page, but must be all that there are.

    A last page may have been given without saying so. It has no name before its start.
    """
    if page is None:
        return True
    if len(selection) != page.limit and page.start is None:
        return True
    if len(selection) > page.limit:
        return True
    if page.start is None or not len(selection):
        return False
    low, _ = selection.bounds
    return Position.of(selection.listing.range(low, low + 1).names[0].as_py()) < page.start


def _at(position: Position) -> str:
    return repr(position.name[:200])


def _shown(name: Any) -> str:
    return repr(name.as_py()[:200])
