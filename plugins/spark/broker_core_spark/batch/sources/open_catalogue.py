"""Opening the catalogue of an address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from broker_core.plugin_cli import RunningBroker
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.source_address import is_table, path_of
from broker_core_spark.batch.source_redaction import redacted_source
from broker_core_spark.batch.sources.catalogue_source import CatalogueSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from broker_core_spark.batch.sources.running_server import ServerSource

__all__ = ["check_catalogue", "open_catalogue"]

_POSTGRES: Final = ("postgresql://", "postgres://")


def open_catalogue(
    source: str | DataFrame | RunningBroker | Sequence[str | DataFrame | RunningBroker],
    *,
    spark: SparkSession,
    namespace: str | None = None,
    where: str | None = None,
    changes: str | None = None,
) -> CatalogueSource:
    """The catalogue of an address, of a running server, of the rows of a DataFrame, or of several of these together.

    - ``postgresql://...``: a database of the Postgres plugin
    - ``table:NAME``: a table of the session
    - ``*.parquet``: a file or folder, read by Spark
    - ``*.sqlite``, ``*.db``, or an SQLite file: the embedded catalogue
    - another file: names of ``namespace``
    - a :class:`~broker_core.plugin_cli.RunningBroker`: what it lists of ``namespace``

    ``where`` is a condition in SQL for the rows of a table or a DataFrame, ``changes`` its column of versions.

    Raises :exc:`InvalidCatalogue`.
    """
    if not isinstance(source, str) and isinstance(source, Sequence):
        from broker_core_spark.batch.sources.joined_catalogues import JoinedCatalogues

        if not source:
            raise InvalidCatalogue("no catalogue is given")
        opened = [
            open_catalogue(one, spark=spark, namespace=namespace, where=where, changes=changes)
            for one in source
        ]
        return opened[0] if len(opened) == 1 else JoinedCatalogues(opened)
    if isinstance(source, str | RunningBroker):
        _check_table(source, where, changes)
    if isinstance(source, RunningBroker):
        return _server(source, namespace)
    if isinstance(source, str) and source.startswith(_POSTGRES):
        from broker_core_spark.batch.sources.postgres_database import PostgresSource

        return PostgresSource(source, spark)
    if not isinstance(source, str) or is_table(source):
        from broker_core_spark.batch.sources.parquet_and_tables import TableSource

        return TableSource(source, spark, namespace, where, changes)
    return _open_file(source, namespace)


def check_catalogue(
    source: str | RunningBroker,
    *,
    namespace: str | None = None,
    where: str | None = None,
    changes: str | None = None,
) -> None:
    """Raise what :func:`open_catalogue` raises, before there is a session of Spark.

    Nothing is read: a database and a table are not asked. A running server is, for one name.
    """
    from broker_core_spark.batch.sources.running_server import ServerSource

    no_session: Any = None  # sources use it when they are read
    found = open_catalogue(source, spark=no_session, namespace=namespace, where=where, changes=changes)
    if isinstance(found, ServerSource):
        found.check()


def _check_table(source: str | RunningBroker, *options: str | None) -> None:
    if any(option is not None for option in options) and not (isinstance(source, str) and is_table(source)):
        raise InvalidCatalogue(
            f"{redacted_source(source)} is no table: --where and --changes are for rows of table:NAME and .parquet"
        )


def _server(server: RunningBroker, namespace: str | None) -> ServerSource:
    from broker_core_spark.batch.sources.running_server import ServerSource

    if namespace is None:
        raise InvalidCatalogue(f"{server.url} is a running server: say of which namespace by --namespace")
    return ServerSource(server, namespace)


def _open_file(source: str, namespace: str | None) -> CatalogueSource:
    from broker_core_spark.batch.sources.names_file import NamesSource
    from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSource, is_embedded

    path = path_of(source)
    if not path.exists():
        raise InvalidCatalogue(f"There is no catalogue {redacted_source(source)}")
    if is_embedded(path):
        return EmbeddedSource(path)
    if namespace is None:
        raise InvalidCatalogue(f"{source} is a file of names: say of which namespace by --namespace")
    return NamesSource(path, namespace)
