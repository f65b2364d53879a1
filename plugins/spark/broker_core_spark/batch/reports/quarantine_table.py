"""The Parquet table of the rows of a catalogue that are no topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import pyarrow as pa

from broker_core_spark.batch.sources.quarantine import QuarantinedRow

__all__ = ["QUARANTINE_SCHEMA", "quarantine_table"]

QUARANTINE_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("namespace", pa.string()),
        ("domain", pa.string()),
        ("reason", pa.string()),
        ("line", pa.int64()),
    ]
)


def quarantine_table(rows: Sequence[QuarantinedRow]) -> pa.Table:
    """One row for each, sorted by line and by name: tasks end in any order."""
    ordered = sorted(rows, key=lambda row: (row.line or 0, row.name or "", row.reason))
    return pa.Table.from_pylist([asdict(row) for row in ordered], schema=QUARANTINE_SCHEMA)
