"""The database of the Postgres plugin as a catalogue, read in parallel from one exported snapshot.

Only the plugin's versioned views for batches are read. A migration may change its tables.

The driver exports the snapshot of a transaction. Each task takes that snapshot and reads its own pages of the table (a
range of ``place``), so a large namespace is many tasks and nothing is read twice. Names come by COPY and go into Arrow
without an object each.

The driver locks the table as a reader does, before the snapshot and until the end: ``TRUNCATE`` also empties older
snapshots, and an empty table must not pass for a catalogue. A truncation or migration waits for the batch. Tasks that
waited for it would never end, so they do not wait, and the batch fails.

Passwords come from ``PGPASSWORD`` or ``~/.pgpass``, on the driver and on the executors.
"""

from __future__ import annotations

import asyncio
import io
import re
import threading
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.csv

from broker_core.change_log import CatalogVersion
from broker_core_spark.batch.build_errors import InvalidCatalogue, TaskFailed
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot, CatalogueSource
from broker_core_spark.batch.sources.stage_rows import rows_by_place
from broker_core_spark.batch.staging.numbered_work import run_numbered
from broker_core_spark.batch.staging.sorted_runs import SortedRun, SortedRunWriter
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PostgresSource"]

#: Pages of the table (8 KiB each) of one task: some 300,000 names, 20 MB of text.
_PAGES: Final = 4096
_BLOCK_BYTES: Final = 4 * 1024 * 1024  # of CSV parsed together
_CONNECT_TIMEOUT: Final = 30.0
_SNAPSHOT: Final = re.compile(r"[0-9A-Fa-f]+(?:-[0-9A-Fa-f]+)*")
#: A second @ in an address, or one after the hosts and outside an option.
_AT: Final = re.compile(r"[a-z]+://(?:[^/?#@]*@[^/?#]*@|[^/?#]*/[^?]*@|[^/?#]*[?#][^=]*@)")
_T = TypeVar("_T")

_BEGIN: Final = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# No time-out may end the snapshot of a batch.
_LOCK: Final = "LOCK TABLE broker_core.batch_v1_topics IN ACCESS SHARE MODE"  # takes no snapshot
#: The version of the views that is read here. The query finds all versions by the names of their topics.
_VERSION: Final = 1
_VERSIONS: Final = r"""
SELECT to_regclass('broker_core.topics') IS NOT NULL AS here, array(
    SELECT substring(c.relname FROM '^batch_v([0-9]{1,6})_topics$')::integer
    FROM pg_class c WHERE c.relnamespace = to_regnamespace('broker_core')
    AND c.relname ~ '^batch_v[0-9]{1,6}_topics$' ORDER BY 1) AS versions
"""
_PATIENT: Final = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"


@dataclass(frozen=True, slots=True)
class PostgresSource(CatalogueSource):
    """The catalogue in a database, ``postgresql://[USER@]HOST[:PORT]/DATABASE``."""

    static = False
    dsn: str = field(repr=False)
    spark: SparkSession

    @contextmanager
    def snapshot(self) -> Iterator[CatalogueSnapshot]:
        """A snapshot of the database, exported until the context ends."""
        with _running_loop() as loop:
            connection = _result(loop, _connected(self.dsn))
            try:
                yield _result(loop, _taken(connection, loop, self))
            finally:
                _result(loop, connection.close(timeout=5))


@contextmanager
def _running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread: the caller, such as a notebook, may have its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="postgres-snapshot", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _result(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine. Errors of the database are :exc:`InvalidCatalogue`."""
    import asyncpg

    try:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise InvalidCatalogue(f"Cannot read the catalogue in PostgreSQL: {_said(error)}") from error


def _said(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


async def _connected(dsn: str) -> Any:
    import asyncpg

    if _AT.search(dsn):  # a wrong reading would show a part of a password in errors
        raise InvalidCatalogue(
            "the address of the catalogue can be read in several ways: an @, :, /, ?, # or % in a user name or a "
            "password is written as %40, %3A, %2F, %3F, %23, %25"
        )
    try:
        return await asyncpg.connect(dsn, timeout=_CONNECT_TIMEOUT, statement_cache_size=0)
    except ValueError:  # the error's text may have a password, with --debug too
        raise InvalidCatalogue("the address of the catalogue is no postgresql:// address") from None


async def _taken(
    connection: Any, loop: asyncio.AbstractEventLoop, source: PostgresSource
) -> _DatabaseSnapshot:
    here = await connection.fetchrow(_VERSIONS)
    if _VERSION not in here["versions"]:
        raise InvalidCatalogue(_not_for_us(here["versions"], here=here["here"]))
    await connection.execute(f"{_BEGIN}; {_PATIENT}; {_LOCK}")
    snapshot = await connection.fetchval("SELECT pg_export_snapshot()")
    catalogue = await connection.fetchrow("SELECT catalog_id, pages FROM broker_core.batch_v1_catalog")
    if catalogue is None:
        raise InvalidCatalogue(
            "the database has no catalogue id: is the schema of the Postgres plugin complete?"
        )
    rows = await connection.fetch("SELECT namespace, version, stamp FROM broker_core.batch_v1_namespaces")
    versions = {
        row["namespace"]: CatalogVersion(catalogue["catalog_id"], int(row["version"]), row["stamp"] or "")
        for row in rows
    }
    return _DatabaseSnapshot(
        connection,
        loop,
        source,
        snapshot,
        int(catalogue["pages"]),
        catalogue_id=catalogue["catalog_id"],
        versions=versions,
    )


def _not_for_us(versions: Sequence[int], *, here: bool) -> str:
    """The reason why a database with these versions of the views is not read."""
    if versions:
        offered = ", ".join(map(str, versions))
        wanted = "broker-core-spark" if min(versions) > _VERSION else "broker-core-postgres"
        return (
            f"the views for batches in the database have version {offered}, but version {_VERSION} is read here: "
            f"upgrade {wanted}"
        )
    if here:
        return (
            "the schema of the Postgres plugin in the database is older than its views for batches: "
            "run broker-core postgres migrate"
        )
    return "the database has no schema of the Postgres plugin: run broker-core postgres migrate"


@dataclass
class _DatabaseSnapshot(CatalogueSnapshot):
    """Exported snapshot of the database. Its table has each name once."""

    connection: Any
    loop: asyncio.AbstractEventLoop
    source: PostgresSource
    exported: str
    pages: int

    def read(self, staging: StagingArea) -> list[SortedRun]:
        wanted = self.versions if staging.namespaces is None else staging.namespaces
        if not self.pages or not wanted:
            return []
        job = SparkJob("read the catalogue", {"pages": self.pages})
        pages = [(first, first + _PAGES) for first in range(0, self.pages, _PAGES)]
        exported = _Exported(self.source.dsn, self.exported, tuple(sorted(wanted)))
        return list(chain.from_iterable(run_numbered(self.source.spark, staging, pages, exported.stage, job)))

    def changes_of(self, namespace: str, since: CatalogVersion) -> Iterable[tuple[str, str]] | None:
        return _result(self.loop, self._changes(namespace, since))

    async def _changes(self, namespace: str, since: CatalogVersion) -> Iterable[tuple[str, str]] | None:
        floor, stamp = await self.connection.fetchrow(
            "SELECT (SELECT log_floor FROM broker_core.batch_v1_namespaces WHERE namespace = $1), "
            "(SELECT stamp FROM broker_core.batch_v1_stamps WHERE namespace = $1 AND version = $2)",
            namespace,
            since.number,
        )
        if floor is None or since.number < floor or (since.stamp and stamp != since.stamp):
            return None
        rows = await self.connection.fetch(
            "SELECT DISTINCT domain, local_name FROM broker_core.batch_v1_changes "
            "WHERE namespace = $1 AND version > $2",
            namespace,
            since.number,
        )
        return [(row["domain"], row["local_name"]) for row in rows]


@dataclass(frozen=True, slots=True)
class _Exported:
    """The exported snapshot as tasks read it. Pickled by reference into the executors."""

    dsn: str = field(repr=False)
    exported: str
    namespaces: tuple[str, ...]

    def stage(
        self, staging: StagingArea, _store: Store, _number: int, pages: tuple[int, int]
    ) -> list[SortedRun]:
        """Stage the names of some pages of the table: the work of a numbered task."""
        writer = SortedRunWriter(staging)
        text = asyncio.run(self._copied(*pages, staging.property_keys))
        for table in _parsed(text, len(staging.property_keys)):
            name, namespace, domain, *values = table.columns
            for place in rows_by_place(name, namespace, domain, values):
                writer.add(*place)
        return writer.finish()

    async def _copied(self, first: int, stop: int, keys: Sequence[str]) -> bytes:
        """The rows of pages ``first`` to ``stop`` as CSV. Texts are quoted, nulls are not."""
        import asyncpg

        values = [f"properties ->> ${number}" for number in range(4, 4 + len(keys))]
        columns = ", ".join(["local_name", "namespace", "domain", *values])
        query = (
            f"SELECT {columns} FROM broker_core.batch_v1_topics "  # noqa: S608 - numbers of parameters alone
            "WHERE place >= $1::text::tid AND place < $2::text::tid AND namespace = ANY($3::text[])"
        )
        if not _SNAPSHOT.fullmatch(self.exported):
            raise TaskFailed("the exported snapshot has a name that is none")
        sink = io.BytesIO()
        try:
            connection = await asyncpg.connect(self.dsn, timeout=_CONNECT_TIMEOUT, statement_cache_size=0)
            try:
                await connection.execute(_BEGIN)
                await connection.execute(f"SET TRANSACTION SNAPSHOT '{self.exported}'")
                await connection.execute(_PATIENT)
                await connection.execute(f"{_LOCK} NOWAIT")
                await connection.copy_from_query(
                    query,
                    f"({first},0)",
                    f"({stop},0)",
                    list(self.namespaces),
                    *keys,
                    output=sink,
                    format="csv",
                    force_quote=True,
                    encoding="utf-8",
                )
            finally:
                await connection.close(timeout=5)
        except asyncpg.LockNotAvailableError as error:
            raise TaskFailed(
                "Somebody waits to truncate or to migrate the topics in PostgreSQL: run the batch again after that"
            ) from error
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise TaskFailed(f"Cannot read the catalogue in PostgreSQL: {_said(error)}") from error
        return sink.getvalue()


def _parsed(text: bytes, properties: int) -> Iterator[pa.RecordBatch]:
    if not text:
        return
    names = ["name", "namespace", "domain", *(f"p{number}" for number in range(properties))]
    yield from pyarrow.csv.open_csv(
        pa.BufferReader(text),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=names),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
