"""Where the topics come from: a snapshot that is held while it is read, and what is known of its version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from broker_core.change_log import CatalogVersion
from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.runs import Run, RunWriter, Window
from broker_core_spark.batch.shown_source import shown_source
from broker_core_spark.store import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["STATIC_ID", "CatalogueSource", "Snapshot", "Staging", "open_source"]

#: The catalogue id of sources that have none, since nothing says when they change.
STATIC_ID: Final = "static"


@dataclass(frozen=True, slots=True)
class Staging:
    """Where and how names are staged; what a task is given to open its own writer."""

    uri: str
    folder: str
    property_keys: tuple[str, ...]
    target: int
    options: Mapping[str, str] = field(default_factory=dict)
    window: Window | None = None

    def open(self) -> Store:
        """The store, opened by this process."""
        return open_store(self.uri, options=self.options)

    def writer(self) -> RunWriter:
        """A writer of runs."""
        return RunWriter(
            self.open(),
            self.folder,
            properties=len(self.property_keys),
            target=self.target,
            window=self.window,
        )

    def within(self, window: Window | None) -> Staging:
        """The same for a part of the names."""
        return replace(self, window=window)


class Snapshot(Protocol):
    """One state of a catalogue.

    ``versions`` has every namespace of it, with its version; ``None`` where the catalogue has none (a static one, whose
    namespaces are known when it is read). ``stamps`` are those of the versions, where the catalogue has them.
    ``repeats`` is how often names were repeated that are staged once all the same.
    """

    catalogue_id: str
    versions: Mapping[str, int] | None
    stamps: Mapping[str, str]
    repeats: int

    def read(self, staging: Staging, namespaces: Sequence[str] | None) -> list[Run]:
        """Stage the names of these namespaces (``None``: of all)."""

    def changed(self, namespace: str, since: CatalogVersion) -> Iterable[tuple[str, str]] | None:
        """(domain, local name) of every name that may have come, gone or changed after ``since``.

        ``None`` where the change log does not say.
        """


class CatalogueSource(Protocol):
    """A catalogue that a snapshot can be taken of."""

    #: It has no change log: a generation of it is right only for as long as the operator says.
    static: bool

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """A state of it, held until the end."""


def open_source(source: str, *, spark: SparkSession, namespace: str | None = None) -> CatalogueSource:
    """The catalogue of ``--catalogue``.

    ``postgresql://...`` is a database of the Postgres plugin, ``table:NAME`` a table of the session, what ends in
    ``.parquet`` is read by Spark, what ends in ``.sqlite`` or ``.db`` (or is an SQLite file) is the embedded catalogue,
    and any other file is one of names, which ``namespace`` is for. Raises :exc:`InvalidCatalogue`.
    """
    from broker_core_spark.batch.source_table import TableSource, is_table

    if source.startswith(("postgresql://", "postgres://")):
        from broker_core_spark.batch.source_postgres import PostgresSource

        return PostgresSource(source, spark)
    if is_table(source):
        return TableSource(source, spark, namespace)
    from broker_core_spark.batch.source_file import EmbeddedSource, NamesSource, is_embedded, path_of

    path = path_of(source)
    if not path.exists():
        raise InvalidCatalogue(f"There is no catalogue {shown_source(source)}")
    if is_embedded(path):
        return EmbeddedSource(path)
    if namespace is None:
        raise InvalidCatalogue(f"{source} is a file of names: say of which namespace by --namespace")
    return NamesSource(path, namespace)
