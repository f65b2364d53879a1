"""The rows of a table with a column of versions: a number, or a time, that grows with each change.

A row stays in the table: a topic that has gone has ``true`` in its column ``deleted``, and neither the name nor the
namespace of a row changes. A stamp has the column and the greatest value in it before the rows were read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.build_errors import InvalidCatalogue, NothingToKeep

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["pin_column"]

_KIND: Final = "column"
#: The version of a row that has none: it never changed.
_LEAST: Final = -(2**63)
_DELETED: Final = "deleted"


@dataclass(frozen=True, slots=True)
class _RowsWithVersions:
    """``value`` is the column as a number, ``greatest`` its greatest value."""

    rows: DataFrame
    column: str
    value: Column
    greatest: int

    @property
    def stamp(self) -> str:
        return f"{_KIND} {hashlib.sha256(self.column.encode()).hexdigest()[:16]} {self.greatest}"

    def frame(self) -> DataFrame:
        # Rows that others change meanwhile are among those of the next time, too.
        return (
            self.rows.where(f"NOT coalesce({_DELETED}, false)")
            if _DELETED in self.rows.columns
            else self.rows
        )

    def changed_rows(self, since: str) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        head, _, greatest = since.rpartition(" ")
        if head != self.stamp.rpartition(" ")[0] or int(greatest) > self.greatest:
            raise NothingToKeep(
                "the published generation is of another table, or of a later state of this one"
            )
        return self.rows.where(self.value > int(greatest)).withColumn("_change_type", F.lit("insert"))


def pin_column(rows: DataFrame, column: str) -> _RowsWithVersions:
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
    return _RowsWithVersions(rows, column, value, _LEAST if found is None else int(found))
