"""Opening the catalogue of an address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from broker_core.names import NamespaceName
from broker_core.plugin_cli import RunningBroker
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.source_address import is_table, path_of
from broker_core_spark.batch.source_redaction import redacted_source
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot, CatalogueSource
from broker_core_spark.batch.sources.names_file import NamesSource, ServerSource
from broker_core_spark.batch.sources.parquet_and_tables import TableSource
from broker_core_spark.batch.sources.postgres_database import PostgresSource
from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSource, is_embedded
from broker_core_spark.batch.staging.sorted_runs import SortedRun
from broker_core_spark.batch.staging.staging_area import StagingArea

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
        if not source:
            raise InvalidCatalogue("no catalogue is given")
        opened = [
            open_catalogue(one, spark=spark, namespace=namespace, where=where, changes=changes)
            for one in source
        ]
        if len(opened) == 1:
            return opened[0]
        for one, catalogue in zip(source, opened, strict=True):
            if isinstance(one, str) and not catalogue.static:
                raise InvalidCatalogue(
                    f"{redacted_source(one)} is built alone, as brokers follow the changes of one database or embedded "
                    "catalogue: several catalogues are tables, Parquet or files of names"
                )
        return _JoinedCatalogues(opened)
    if not isinstance(source, str | RunningBroker) or (
        isinstance(source, str) and is_table(source) and not source.startswith(_POSTGRES)
    ):
        return TableSource(source, spark, namespace, where, changes)
    if where is not None or changes is not None:
        raise InvalidCatalogue(
            f"{redacted_source(source)} is no table: --where and --changes are for rows of table:NAME and .parquet"
        )
    if isinstance(source, str) and source.startswith(_POSTGRES):
        return PostgresSource(source, spark)
    return _of_namespace(source, namespace)


def _of_namespace(source: str | RunningBroker, namespace: str | None) -> CatalogueSource:
    """The embedded catalogue in a file, or the names of a namespace in a file or at a server."""
    if isinstance(source, RunningBroker):
        if namespace is None:
            raise InvalidCatalogue(f"{source.url} is a running server: say of which namespace by --namespace")
        return ServerSource(source, NamespaceName.parse(namespace))
    path = path_of(source)
    if not path.exists():
        raise InvalidCatalogue(f"There is no catalogue {redacted_source(source)}")
    if is_embedded(path):
        return EmbeddedSource(path)
    if namespace is None:
        raise InvalidCatalogue(f"{source} is a file of names: say of which namespace by --namespace")
    return NamesSource(path, NamespaceName.parse(namespace), str(path))


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
    no_session: Any = None  # sources use it when they are read
    found = open_catalogue(source, spark=no_session, namespace=namespace, where=where, changes=changes)
    if isinstance(found, ServerSource):
        found.check()


@dataclass(frozen=True, slots=True)
class _JoinedCatalogues(CatalogueSource):
    """A static catalogue of several static ones: a broker follows the changes of one catalogue alone."""

    sources: Sequence[CatalogueSource]

    @contextmanager
    def snapshot(self) -> Iterator[CatalogueSnapshot]:
        """The current state of each, held until the context ends."""
        with ExitStack() as held:
            parts = [held.enter_context(source.snapshot()) for source in self.sources]
            yield _JoinedSnapshot(
                parts,
                unversioned="several catalogues have no version together",
                repeats=sum(part.repeats for part in parts),
                left_out=sum(part.left_out for part in parts),
            )


@dataclass
class _JoinedSnapshot(CatalogueSnapshot):
    parts: Sequence[CatalogueSnapshot]

    def read(self, staging: StagingArea) -> list[SortedRun]:
        return [run for part in self.parts for run in part.read(staging)]
