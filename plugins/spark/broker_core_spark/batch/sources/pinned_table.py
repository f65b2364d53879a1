"""Tables with versions, each at one of its versions.

A version is one of the table's format, or the greatest value in a column of versions: a number, or a time, that grows
with each change. Then a row stays in the table: a topic that has gone has ``true`` in its column ``deleted``, and
neither the name nor the namespace of a row changes. A stamp has the table's address, the column and that value.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.build_errors import InvalidCatalogue, NothingToKeep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CHANGE", "PinnedTable", "at_version", "name_and_version", "pin_column"]

#: The column with the kind of a row's change, in Iceberg and in Delta.
CHANGE: Final = "_change_type"
_VERSION: Final = re.compile(r"(?P<name>.*\S)\s+version\s+as\s+of\s+(?P<version>[0-9]{1,19})", re.IGNORECASE)
#: The version of a row that has none: it never changed.
_LEAST: Final = -(2**63)
_DELETED: Final = "deleted"


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table at one version: all ``rows``, with its columns; or at none, and why it is ``unversioned``.

    ``stamp`` distinguishes the version from all others of this table and of any other. ``changed_rows`` gives the rows
    that came and went after the version of a stamp, as in column ``_change_type``; it is ``None`` for a table at no
    version. A row that was only moved to another file may be among them, as one that went and came. It raises
    :exc:`~broker_core_spark.batch.build_errors.NothingToKeep` if the table does not know. ``counted`` has at least the
    rows, and its format knows their number; ``None`` if counting may take as long as a query.
    """

    rows: DataFrame
    stamp: str = ""
    changed_rows: Callable[[str], DataFrame] | None = None
    unversioned: str = ""
    counted: DataFrame | None = None


def name_and_version(table: str) -> tuple[str, int | None]:
    """The name and the version of ``NAME VERSION AS OF N``, ``None`` for a name alone."""
    found = _VERSION.fullmatch(table)
    return (found["name"], int(found["version"])) if found else (table, None)


def at_version(spark: SparkSession, name: str, version: int) -> DataFrame:
    """The rows of a table at a version."""
    return spark.read.option("versionAsOf", version).table(name)


def pin_column(rows: DataFrame, address: str, column: str) -> PinnedTable:
    """The table at ``address`` by its column of versions.

    Raises :exc:`InvalidCatalogue` without the column, and if it is of another type.
    """
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
    # Without rows there is no greatest one.
    greatest = int(
        rows.agg(F.coalesce(F.max(value), F.lit(_LEAST)).alias("greatest")).collect()[0]["greatest"]
    )
    head = f"column {hashlib.sha256(f'{address} {column}'.encode()).hexdigest()[:16]}"

    def changed_rows(since: str) -> DataFrame:
        known, _, before = since.rpartition(" ")
        if known != head or int(before) > greatest:
            raise NothingToKeep(
                "the published generation is of another table, or of a later state of this one"
            )
        return rows.where(value > int(before)).withColumn(CHANGE, F.lit("insert"))

    # Rows that others change meanwhile are among those of the next time, too.
    # Spark takes DELETED for the column too.
    here = (
        rows.where(f"NOT coalesce({_DELETED}, false)") if _DELETED in map(str.lower, rows.columns) else rows
    )
    return PinnedTable(here, f"{head} {greatest}", changed_rows)
