"""How many topics of a selection are persistent, and how many are not."""

from __future__ import annotations

from broker_core.listing.listing import Selection, data_of, part_of
from broker_core.names import DOMAINS

__all__ = ["rows_by_domain"]


def rows_by_domain(selection: Selection) -> dict[str, int]:
    """The number of names of each domain; each chunk has names of one domain."""
    data = data_of(selection.listing)
    counts = dict.fromkeys(DOMAINS, 0)
    for number, rows in part_of(selection).pieces_in(data):
        counts[data.chunks[number].domain] += len(rows)
    return counts
