"""A topic ``x`` beside a partition ``x-partition-0``: no broker makes such a pair; a catalogue has one row for both.

So both have the same properties. If they are given different ones, the pair is refused: one of the two names would be
missing in selections by property. A pair with the same properties, or without any, is accepted, since some clusters
list one (made by old releases), and it is listed and selected correctly.
"""

from __future__ import annotations

__all__ = ["is_pair"]


def is_pair(listed: str) -> bool:
    """Whether the compact form lists the plain name and partitions; a function of the SQL of imports."""
    return listed.startswith("*,")
