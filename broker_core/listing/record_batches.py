"""Topics of a listing as Arrow record batches: full names, encoded fields, and what patterns match."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import Any

import pyarrow as pa

from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart
from broker_core.names import matched_forms

__all__ = ["record_batches"]


def record_batches(
    data: ListingData, part: ListingPart, columns: tuple[str, ...], most: int
) -> Iterator[pa.RecordBatch]:
    """A part of a listing, at most ``most`` topics at a time: see :meth:`~.listing.Selection.batches`."""
    unknown = set(columns) - {"name", "field", "matched"}
    if unknown or not columns:
        raise ValueError(
            f"columns are name, field and matched, not {', '.join(map(repr, columns)) or 'none'}"
        )
    if (most := index(most)) < 1:
        raise ValueError(f"rows must be at least 1, not {most}")
    for low in range(0, len(part), most):
        pieces = part.stretch(low, min(low + most, len(part)), data).pieces_in(data)
        names = data.names(pieces) if set(columns) != {"field"} else None
        made: dict[str, Any] = {"name": names}
        if "field" in columns:
            made["field"] = data.column(pieces)
        if "matched" in columns:
            made["matched"] = matched_forms(names, data.namespace)
        yield pa.record_batch([made[column] for column in columns], names=list(columns))
