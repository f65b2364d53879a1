"""The rows of a table with a column of versions: a number, or a time, that grows with each change.

A row stays in the table: a topic that has gone has ``true`` in its column ``deleted``, and neither the name nor the
namespace of a row changes. A stamp has the column and the greatest value in it before the rows were read.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.build_errors import InvalidCatalogue, NothingToKeep
from broker_core_spark.batch.sources.pinned_table import PinnedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["pin_column"]

_KIND: Final = "column"
#: The version of a row that has none: it never changed.
_LEAST: Final = -(2**63)
_DELETED: Final = "deleted"


def pin_column(rows: DataFrame, column: str) -> PinnedTable:
    """The rows of now. Raises :exc:`InvalidCatalogue` for a column that is not there, or of another type."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
    from pyspark.sql.types import IntegralType, TimestampType

    if column not in rows.columns:
        raise InvalidCatalogue(
            f"no column {column!r:.100} with versions among {', '.join(rows.columns)[:500]}"
        )
    kind = rows.schema[column].dataType
    if isinstance(kind, TimestampType):
        number = F.unix_micros(F.col(f"`{column}`"))
    elif isinstance(kind, IntegralType):
        number = F.col(f"`{column}`").cast("bigint")
    else:
        raise InvalidCatalogue(
            f"the column {column!r:.100} with versions is of the type {kind.simpleString():.100}: whole numbers, or "
            "times with a zone, are expected"
        )
    value = F.coalesce(number, F.lit(_LEAST))
    found = rows.agg(F.max(value).alias("greatest")).collect()[0]["greatest"]
    greatest = _LEAST if found is None else int(found)
    head = f"{_KIND} {hashlib.sha256(column.encode()).hexdigest()[:16]}"

    def changed_rows(since: str) -> DataFrame:
        known, _, before = since.rpartition(" ")
        if known != head or int(before) > greatest:
            raise NothingToKeep(
                "the published generation is of another table, or of a later state of this one"
            )
        return rows.where(value > int(before)).withColumn("_change_type", F.lit("insert"))

    # Rows that others change meanwhile are among those of the next time, too.
    here = rows.where(f"NOT coalesce({_DELETED}, false)") if _DELETED in rows.columns else rows
    return PinnedTable(here, f"{head} {greatest}", changed_rows)
