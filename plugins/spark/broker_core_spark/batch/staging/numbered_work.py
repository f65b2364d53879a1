"""The work of numbered tasks, one staged file each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.store import Store

__all__ = ["numbered_work"]

#: Bytes of the largest file.
_MOST_BYTES: Final = 2 * 1024**3


def numbered_work(
    store: Store, prefix: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, bytes]]:
    """The number and the content of ``prefixNUMBER.json`` for each number in the first column of ``batches``.

    Raises :exc:`InvalidCatalogue` for a file that is not there.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            data = store.get(f"{prefix}{number}.json", _MOST_BYTES)
            if data is None:
                raise InvalidCatalogue(
                    f"The work of task {number} is not in {store.uri}: a store is a bucket or a folder that the "
                    "driver and all executors share, and nobody else empties its folder temporary during a build"
                )
            yield number, data
