"""Encoded names under another tag than that of a listing's answer, a block at a time: for messages of watchers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from broker_core.listing.fields_reader import FieldsReader
from broker_core.listing.listing import Selection
from broker_core.names import column_data

__all__ = ["tagged_fields"]

#: Rows of a block.
_ROWS: Final = 4096


def tagged_fields(selection: Selection, tag: int) -> FieldsReader:
    """The names as protobuf fields with a tag of one byte; ``selection.fields_size`` bytes in all."""
    return FieldsReader(_blocks(selection, tag), selection.fields_size)


def _blocks(selection: Selection, tag: int) -> Iterator[memoryview]:
    for batch in selection.batches("field", rows=_ROWS):
        data, offsets = column_data(batch.column("field"))
        first = offsets.item(0)
        block = np.frombuffer(data, np.uint8)[first : offsets.item(-1)].copy()
        block[offsets[:-1] - first] = tag
        yield block.data
