"""A topic ``x`` beside a partition ``x-partition-0``: no broker makes such a pair; a catalogue has one row for both.

So both have the same properties. Where they are given different ones, the pair is refused: one of the two names would
go missing from selections by property. A pair of the same properties, or without any, is taken, since there are
clusters that list one (made by old releases), and it is listed and selected right.
"""

from __future__ import annotations

__all__ = ["is_pair"]


def is_pair(listed: str) -> bool:
    """Whether the compact form lists the plain name and partitions; a function of the SQL of imports."""
    return listed.startswith("*,")
