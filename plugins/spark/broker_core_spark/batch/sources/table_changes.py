"""The names in changed rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from broker_core_spark.batch.build_errors import InvalidCatalogue, NothingToKeep
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.sources.stage_rows import rows_by_place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["CHANGE", "MOST_NAMES", "changed_names"]

#: The column with the kind of a row's change, in Iceberg and in Delta.
CHANGE: Final = "_change_type"
#: More changed names are not collected: the table is read in full.
MOST_NAMES: Final = 1_000_000
_CAME: Final = ("insert", "update_postimage", "update_after")
_TEXT: Final = pa.large_string()


def changed_names(rows: DataFrame, default_namespace: str | None) -> dict[str, set[tuple[str, str]]]:
    """(domain, local name) of the names in rows that came or went, by namespace.

    ``rows`` has the columns that are staged, and ``_change_type``. A row that came as often as it went did not change:
    it was written to another file. Raises :exc:`NothingToKeep` for a row that is no topic, and for too many names.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    columns = [column for column in rows.columns if column != CHANGE]
    sign = F.when(F.lower(F.col(CHANGE)).isin(*_CAME), 1).otherwise(-1)
    changed = rows.groupBy(*columns).agg(F.sum(sign).alias("times")).where("times <> 0")
    names = changed.select("name", "namespace", "domain").distinct().limit(MOST_NAMES + 1)
    with described_job(rows.sparkSession, SparkJob("read the changes of the table")):
        table = names.toArrow()
    if len(table) > MOST_NAMES:
        raise NothingToKeep(f"more than {MOST_NAMES:,} names changed")
    try:
        # Rows that a full build refuses are not accepted here.
        name, namespace, domain = (column.combine_chunks().cast(_TEXT) for column in table.columns)
        name.validate(full=True)  # the cast does not validate texts
        found: dict[str, set[tuple[str, str]]] = {}
        for place, kind, locals_, _ in rows_by_place(name, namespace, domain, [], default_namespace):
            found.setdefault(place, set()).update((kind, local) for local in locals_.to_pylist())
        return found
    except (InvalidCatalogue, pa.ArrowInvalid) as error:
        raise NothingToKeep(f"a changed row is no topic: {error}") from error
