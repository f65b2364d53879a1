"""Search for the topics' fields of a large answer, by comparing the whole body with their tag."""

from __future__ import annotations

import numpy as np

from broker_core.listing.fields.topic_field import TAG
from broker_core.names import Array

__all__ = ["search_fields"]


def search_fields(data: memoryview, position: int, end: int) -> tuple[Array, Array, int] | None:
    """The results of :func:`~broker_core.listing.fields.topic_field.walk_fields`, without a step per field.

    ``None`` if the fields cannot be identified by this search.
    """
    body = np.frombuffer(data, np.uint8)[position:end]
    size = len(body)
    chunk = 1 << 17  # the search stays in the processor's cache
    heads: Array = np.concatenate(
        [np.flatnonzero(body[start : start + chunk] == TAG) + start for start in range(0, size, chunk)]
    )
    heads = heads[heads < size - 4]
    # The length: seven bits a byte, the lowest first, of at most three bytes.
    lengths: Array = body[heads + 1].astype(np.int64)
    starts: Array = heads + 2
    long = np.flatnonzero(lengths >= 0x80)
    if len(long):
        second = body[heads[long] + 2].astype(np.int64)
        third = body[heads[long] + 3].astype(np.int64)
        three = second >= 0x80
        longest = np.where(third < 0x80, third << 14, size)  # more bytes: too long for a name, or none at all
        lengths[long] = (lengths[long] & 0x7F) | (second & 0x7F) << 7 | np.where(three, longest, 0)
        starts[long] += 1 + three
    # Every full name begins with a domain, unlike most bytes 0x12 that are lengths, or within a name.
    first = body[np.minimum(starts, size - 1)]
    real = (first == ord("p")) | (first == ord("n"))
    if not real.all():
        heads, starts, lengths = heads[real], starts[real], lengths[real]
    if not len(heads) or heads[0] != 0:
        return None
    ends = starts + lengths
    chained = ends[:-1] == heads[1:]
    count = len(heads) if chained.all() else int(np.argmin(chained)) + 1
    run_end = int(ends[count - 1])
    if run_end > size or (run_end < size and body[run_end] == TAG):
        return None
    return starts[:count] + position, lengths[:count], position + run_end
