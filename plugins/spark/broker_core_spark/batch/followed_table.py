"""Following a table between builds: changes since the published generation go to the brokers by the store.

Brokers have no Spark. A look asks the table for the changes since the generation's state, reads the changed names, and
leaves their states as a file that every broker puts into its overlay
(:mod:`broker_core_spark.store.table_changes_file`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from broker_core.quantities import counted
from broker_core_spark.batch.build_errors import BatchError, NothingToKeep
from broker_core_spark.batch.sources.open_catalogue import open_catalogue
from broker_core_spark.batch.sources.parquet_and_tables import TableSource
from broker_core_spark.store import (
    MOST_CHANGED,
    ChangedName,
    Store,
    TableChanges,
    current_pointer,
    newest_changes,
    open_store,
    read_manifest,
    write_changes,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from broker_core_spark.format import Manifest

__all__ = ["follow_table"]


def follow_table(
    spark: SparkSession,
    *,
    catalogue: str | DataFrame,
    store: str,
    namespace: str | None = None,
    where: str | None = None,
    changes: str | None = None,
    store_options: Mapping[str, str] | None = None,
) -> TableChanges:
    """Look once at the table of the published generation, and leave its changes for the brokers.

    All but ``spark`` and the store are as for the build. Raises :exc:`BatchError` if the table does not know the
    changes, or there are too many: then build again. Raises the errors of a build for rows that are no topics.
    """
    place = open_store(store, store_options or {})
    source = open_catalogue(catalogue, spark=spark, namespace=namespace, where=where, changes=changes)
    if not isinstance(source, TableSource):
        raise BatchError("only a table is followed so: brokers follow other catalogues by their change logs")
    while True:
        published = current_pointer(place)
        if published is None:
            raise BatchError(f"{place.uri}: nothing is published there: build first")
        made = _look(place, read_manifest(place, published.generation), source)
        if write_changes(place, made):
            return made


def _look(place: Store, manifest: Manifest, source: TableSource) -> TableChanges:
    since = manifest.versions()
    if not manifest.static or not since:
        raise BatchError(
            f"generation {manifest.id[:12]} is of no table with versions: build it of Iceberg or Delta, or "
            "with --changes"
        )
    before = newest_changes(place, manifest.id)
    names: set[ChangedName] = set(before.names) if before else set()
    looked = datetime.now(UTC)
    with source.snapshot() as snapshot:
        if snapshot.unversioned:
            raise BatchError(f"{snapshot.unversioned}: it cannot be followed")
        now = {name: snapshot.version(name) for name in since}
        moved = any(one is None or one.stamp != since[name].stamp for name, one in now.items())
        try:
            found = snapshot.changes(since, manifest.property_keys) if moved else {}
        except NothingToKeep as error:
            raise BatchError(f"{error}: build again") from error
        names |= {(place, *name) for place, changed in found.items() for name in changed or ()}
        if len(names) > MOST_CHANGED:
            raise BatchError(
                f"{counted(len(names), 'name', spec=',')} changed since the generation, more than "
                f"{MOST_CHANGED:,}: build again"
            )
        states = snapshot.states(names, manifest.property_keys)
    return TableChanges(
        manifest.id, before.number + 1 if before else 1, looked, {name: states.get(name) for name in names}
    )
