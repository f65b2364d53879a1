"""Opening the catalogue of an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_core.names import NamespaceName
from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.source_address import is_table, path_of
from broker_core_spark.batch.source_redaction import redacted_source
from broker_core_spark.batch.sources.catalogue_source import CatalogueSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["check_catalogue", "open_catalogue"]

_POSTGRES: Final = ("postgresql://", "postgres://")


def open_catalogue(
    source: str | DataFrame,
    *,
    spark: SparkSession,
    namespace: str | None = None,
    quarantine: bool = False,
) -> CatalogueSource:
    """The catalogue of ``--catalogue``, or that of the rows of a DataFrame.

    - ``postgresql://...``: a database of the Postgres plugin
    - ``table:NAME``: a table of the session
    - ``*.parquet``: a file or folder, read by Spark
    - ``*.sqlite``, ``*.db``, or an SQLite file: the embedded catalogue
    - another file: names of ``namespace``

    With ``quarantine``, a table and a file of names put rows aside that are no topics. The others have none.

    Raises :exc:`InvalidCatalogue`.
    """

    if isinstance(source, str) and source.startswith(_POSTGRES):
        from broker_core_spark.batch.sources.postgres_database import PostgresSource

        return PostgresSource(source, spark)
    if not isinstance(source, str) or is_table(source):
        from broker_core_spark.batch.sources.parquet_and_tables import TableSource

        return TableSource(source, spark, namespace, quarantine=quarantine)
    return _open_file(source, namespace, quarantine=quarantine)


def check_catalogue(source: str, *, namespace: str | None = None) -> None:
    """Raise what :func:`open_catalogue` raises, where a session of Spark is not there yet.

    Nothing is read: a database and a table are not asked.
    """
    if source.startswith(_POSTGRES):
        return
    if is_table(source):
        if namespace is not None:
            NamespaceName.parse(namespace)
        return
    _open_file(source, namespace)


def _open_file(source: str, namespace: str | None, *, quarantine: bool = False) -> CatalogueSource:
    from broker_core_spark.batch.sources.names_file import NamesSource
    from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSource, is_embedded

    path = path_of(source)
    if not path.exists():
        raise InvalidCatalogue(f"There is no catalogue {redacted_source(source)}")
    if is_embedded(path):
        return EmbeddedSource(path)
    if namespace is None:
        raise InvalidCatalogue(f"{source} is a file of names: say of which namespace by --namespace")
    return NamesSource(path, namespace, quarantine=quarantine)
