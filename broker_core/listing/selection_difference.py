"""The topics by which two selections differ, of versions of one namespace's listing."""

from __future__ import annotations

from typing import Final

from broker_core.listing.listing import Selection, data_of, part_of, selection_of
from broker_core.listing.part_difference import bytes_to_compare, part_difference

__all__ = ["QUICK_BYTES", "difference_bytes", "selection_difference"]

#: So many bytes are compared on the event loop: passing them to a thread takes as long.
QUICK_BYTES: Final = 256 * 1024


def selection_difference(selection: Selection, older: Selection) -> tuple[Selection, Selection]:
    """The topics that ``older`` does not have, and (of its listing) the topics that are not in ``selection``.

    It costs what changed, as :meth:`Listing.difference` does. Both are of one namespace.
    """
    listing, former = selection.listing, older.listing
    added, gone = part_difference(data_of(listing), part_of(selection), data_of(former), part_of(older))
    return selection_of(listing, added), selection_of(former, gone)


def difference_bytes(selection: Selection, older: Selection) -> int:
    """About how many bytes :func:`selection_difference` takes."""
    data, former = data_of(selection.listing), data_of(older.listing)
    return bytes_to_compare(data, part_of(selection), former, part_of(older))
