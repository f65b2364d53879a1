"""The chunks of a few names, which are handled one by one: as columns they would take longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.property_codes import PropertyCodes
from broker_core.listing.fields.topic_field import topic_field
from broker_core.names import (
    NON_PERSISTENT,
    PARTITION_SUFFIX,
    PERSISTENT,
    Mode,
    NamespaceName,
    hash_order_bytes,
    listed_topic,
)

__all__ = ["FEW_NAMES", "chunks_of_few"]

#: With more names than this their columns are quicker.
FEW_NAMES: Final = 64
#: Characters from this on sort otherwise in UTF-16 than in UTF-8, or may.
_MOVED: Final = "\ue000"


def chunks_of_few(
    namespace: NamespaceName,
    mode: Mode,
    names: Sequence[str],
    properties: Mapping[str, Sequence[str | None]],
) -> list[Chunk]:
    """The chunks that :func:`~.build_chunks.build_chunks` makes, of full names and the values of their properties.

    Raises :exc:`~broker_core.errors.InvalidListing` for an invalid name, or one of another namespace or mode.
    """
    rows: dict[str, dict[bytes, int]] = {NON_PERSISTENT: {}, PERSISTENT: {}}
    for row, name in enumerate(names):
        topic = listed_topic(name, namespace, mode)
        if not topic.is_system:
            rows[topic.domain][hash_order_bytes(str(topic).encode())] = row
    chunks: list[Chunk] = []
    for domain, found in rows.items():
        if found:
            own = [row for _, row in sorted(found.items())]
            fields = [topic_field(names[row]) for row in own]
            codes = {
                key: PropertyCodes.of(pa.array([values[row] for row in own], pa.large_string()))
                for key, values in properties.items()
            }
            ends = np.array([0, *accumulate(map(len, fields))], np.int64)
            chunk = Chunk(namespace, domain, pa.py_buffer(b"".join(fields)), ends, codes)
            chunk.know_plain(
                not any(PARTITION_SUFFIX in names[row] or max(names[row]) >= _MOVED for row in own)
            )
            chunks.append(chunk)
    return chunks
