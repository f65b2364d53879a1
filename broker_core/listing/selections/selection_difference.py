"""The topics by which two selections differ, of versions of one namespace's listing."""

from __future__ import annotations

from broker_core.listing.changes.part_difference import bytes_to_compare, part_difference
from broker_core.listing.listing import Listing, Selection, data_of, part_of, selection_of
from broker_core.names import name_of_hash_order

__all__ = ["difference_bytes", "known_changes", "selection_difference"]


def selection_difference(selection: Selection, older: Selection) -> tuple[Selection, Selection]:
    """The topics that ``older`` does not have, and (of its listing) the topics that are not in ``selection``.

    It costs what changed, as :meth:`Listing.difference` does. Both are of one namespace.
    """
    listing, former = selection.listing, older.listing
    added, gone = part_difference(data_of(listing), part_of(selection), data_of(former), part_of(older))
    return selection_of(listing, added), selection_of(former, gone)


def known_changes(listing: Listing, older: Listing) -> list[str] | None:
    """The full names that only one of two versions of a listing has, if that is known without reading them."""
    changes = data_of(listing).changes_since(data_of(older))
    return None if changes is None else [name_of_hash_order(key) for keys in changes for key in keys]


def difference_bytes(selection: Selection, older: Selection) -> int:
    """About how many bytes :func:`selection_difference` takes."""
    data, former = data_of(selection.listing), data_of(older.listing)
    return bytes_to_compare(data, part_of(selection), former, part_of(older))
