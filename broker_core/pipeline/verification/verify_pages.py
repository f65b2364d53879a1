"""Checking the pages that plugins give, and distinguishing a page from a whole listing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from broker_core.counted import counted
from broker_core.listing import Page, Position, Selection, first_out_of_order, in_page_order
from broker_core.names import TopicName
from broker_core.pipeline.verification.bad_topics import bad_topics

__all__ = ["check_order", "check_page", "surely_whole"]


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
