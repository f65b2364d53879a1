"""The database of the Postgres plugin as a catalogue: one snapshot for all tasks, versions, changes."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from broker_core_spark.batch.build_errors import InvalidCatalogue, TaskFailed
from broker_core_spark.batch.job import build
from broker_core_spark.batch.sources import postgres_database
from broker_core_spark.batch.sources.postgres_database import PostgresSource
from broker_core_spark.batch.staging.sorted_runs import joined_names, read_blocks
from broker_core_spark.batch.staging.staging_area import StagingArea
from tests.support.catalogue_chains import Name, check_chain
from tests.support.eventually import eventually
from tests.support.spark_catalogues import generation_files, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.postgres_server import Database, PostgresServer

ODD = ['quo"te', "new\nline", "com,ma", "\ue000é", "😀", " spaced ", "NULL", "\\N"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    from tests.support.postgres_server import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    made = postgres_server.create_database()
    yield made
    postgres_server.drop_database(made.name)


def filled(database: Database, count: int = 5000) -> None:
    database.sql(
        "INSERT INTO broker_core.topics (namespace, domain, local_name, properties) "
        "SELECT 'public/large', 'persistent', 'orders-' || n, "
        "jsonb_build_object('region', CASE n % 2 WHEN 0 THEN 'eu' ELSE '' END, 'other', n::text) "
        f"FROM generate_series(1, {count}) n"
    )
    for name in ODD:
        text = name.replace("'", "''")
        database.sql(
            "INSERT INTO broker_core.topics (namespace, domain, local_name) "
            f"VALUES ('public/odd', 'non-persistent', '{text}')"
        )


def staged(store: Any, runs: list[Any], properties: int) -> pa.RecordBatch:
    parts = [read_blocks(store, run.path, run.blocks, properties) for run in runs if run.blocks]
    return joined_names(parts, properties)


def test_all_tasks_read_one_snapshot(
    spark: SparkSession, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "_PAGES", 16)  # many tasks, for few topics
    filled(database)
    staging = StagingArea(str(tmp_path), "temporary/test", ("region",), 1 << 20)
    with PostgresSource(database.dsn, spark).snapshot() as snapshot:
        # Later than the snapshot, and not to be seen.
        database.sql("DELETE FROM broker_core.topics WHERE local_name < 'orders-3'")
        database.sql(
            "INSERT INTO broker_core.topics (namespace, domain, local_name) "
            "VALUES ('public/large', 'persistent', 'later')"
        )
        runs = snapshot.read(staging)
        assert len(runs) > 3
        versions = {name: snapshot.version(name) for name in ("public/large", "public/odd", "no/where")}
        assert {name: version and version.number for name, version in versions.items()} == {
            "public/large": 1,
            "public/odd": len(ODD),
            "no/where": None,
        }
    counts: dict[tuple[str, str], int] = {}
    for run in runs:
        for place, count in run.names.items():
            counts[place] = counts.get(place, 0) + count
    assert counts == {("public/large", "persistent"): 5000, ("public/odd", "non-persistent"): len(ODD)}
    rows = staged(staging.open(), runs, 1)
    assert len(set(rows["key"].to_pylist())) == 5000 + len(ODD)
    values = rows["p0"].to_pylist()
    assert (values.count("eu"), values.count(""), values.count(None)) == (2500, 2500, len(ODD))


def test_rows_that_are_replaced_are_never_missing(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    filled(database, 100)
    staging = StagingArea(str(tmp_path), "temporary/test", (), 1 << 20)
    truncate = "TRUNCATE broker_core.topics"
    with PostgresSource(database.dsn, spark).snapshot() as snapshot:
        with pytest.raises(Exception, match="lock timeout"):
            database.sql(f"SET lock_timeout = '200ms'; {truncate}")
        runs = snapshot.read(staging)
        assert sum(count for run in runs for count in run.names.values()) == 100 + len(ODD)
    database.sql(truncate)


async def test_a_batch_and_who_waits_for_it_do_not_wait_for_each_other(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    filled(database, 100)
    staging = StagingArea(str(tmp_path), "temporary/test", (), 1 << 20)
    feeder, watching = await database.connect(), await database.connect()

    async def waits() -> bool:
        return bool(
            await watching.fetchval(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted)"
            )
        )

    def read(snapshot: Any) -> None:
        with pytest.raises(TaskFailed, match="waits to truncate or to migrate"):
            snapshot.read(staging)

    with PostgresSource(database.dsn, spark).snapshot() as snapshot:
        truncating = asyncio.create_task(feeder.execute("TRUNCATE broker_core.topics"))
        await eventually(waits, 60)
        await asyncio.to_thread(read, snapshot)
    await truncating
    await feeder.close()
    await watching.close()


def test_a_build_and_an_incremental_one(spark: SparkSession, database: Database, tmp_path: Path) -> None:
    filled(database)
    rows: list[dict[str, Any]] = [
        {"namespace": "public/large", "pattern": ".*7", "properties": {"region": "eu"}},
        {"namespace": "public/large", "pattern": "public/large/orders-12.*"},
        {"namespace": "public/odd", "mode": "ALL", "pattern": ".*e.*"},
    ]
    patterns = write_patterns(tmp_path / "patterns.jsonl", rows)

    def built(store: str, *, incremental: bool) -> Any:
        return build(
            spark,
            catalogue=f"{database.dsn}?password=secret",
            patterns=str(patterns),
            store=str(tmp_path / store),
            property_keys=("region",),
            segment_bytes=16 * 1024,
            incremental=incremental,
            report=tmp_path / "report.html",
        )

    first = built("store", incremental=True)
    assert not first.manifest.static
    assert first.record()["catalogue"] == database.dsn.replace("postgres@", "")
    assert "secret" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert {total.count for total in first.totals} == {0, 111, 2}
    database.sql("DELETE FROM broker_core.topics WHERE local_name = 'orders-1234'")
    second, full = built("store", incremental=True), built("full", incremental=False)
    assert second.segments_kept == len(first.manifest.segments) - 1
    assert second.generation == full.generation
    assert generation_files(tmp_path / "store", second.manifest) == generation_files(
        tmp_path / "full", full.manifest
    )
    assert second.manifest.namespaces["public/large"] == 2


class _Changes:
    """The topics of a database, changed by SQL."""

    def __init__(self, database: Database) -> None:
        self.source = database.dsn
        self._database = database

    def change(self, put: Mapping[Name, str | None], removed: Collection[Name]) -> None:
        topics = "broker_core.topics"
        gone = [f"({', '.join(map(_quoted, name))})" for name in removed]
        for name in gone:
            self._database.sql(f"DELETE FROM {topics} WHERE (namespace, domain, local_name) = {name}")
        rows = [
            f"({', '.join(map(_quoted, name))}, {_quoted(json.dumps({} if region is None else {'region': region}))})"
            for name, region in put.items()
        ]
        self._database.sql(
            f"INSERT INTO {topics} (namespace, domain, local_name, properties) VALUES {', '.join(rows)} "
            "ON CONFLICT (namespace, domain, local_name) DO UPDATE SET properties = EXCLUDED.properties"
        )

    def rewrite(self) -> None:
        """Move rows to other pages."""
        self._database.sql("VACUUM FULL broker_core.topics")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.many
def test_random_chains_of_changes_equal_full_builds(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    check_chain(spark, _Changes(database), tmp_path, seed=5)


def test_what_cannot_be_read_is_said_without_secrets(spark: SparkSession, database: Database) -> None:
    with (
        pytest.raises(InvalidCatalogue, match="PostgreSQL") as caught,
        PostgresSource("postgresql://someone@127.0.0.1:1/none", spark).snapshot(),
    ):
        pass
    assert "127.0.0.1" not in str(caught.value) or "someone" not in str(caught.value)
    database.sql("DROP SCHEMA broker_core CASCADE")
    with pytest.raises(InvalidCatalogue, match="schema"), PostgresSource(database.dsn, spark).snapshot():
        pass


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP SCHEMA broker_core CASCADE", "no schema of the Postgres plugin"),
        ("DROP VIEW broker_core.batch_v1_topics", "run broker-core postgres migrate"),
        (
            "ALTER VIEW broker_core.batch_v1_topics RENAME TO batch_v2_topics",
            "have version 2, but version 1 is read here: upgrade broker-core-spark",
        ),
    ],
    ids=["nothing", "older", "newer"],
)
def test_views_of_another_version_are_told_of(
    spark: SparkSession, database: Database, change: str, said: str
) -> None:
    database.sql(change)
    with pytest.raises(InvalidCatalogue, match=said), PostgresSource(database.dsn, spark).snapshot():
        pass


def test_who_may_read_the_views_alone_may_run_a_batch(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    filled(database, 100)
    role = f"batch_{database.name}"
    views = ", ".join(
        f"broker_core.batch_v1_{name}" for name in ("catalog", "namespaces", "stamps", "topics", "changes")
    )
    database.sql(
        f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA broker_core TO {role}; GRANT SELECT ON {views} TO {role}"
    )
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "public/large", "pattern": ".*7"}])
    source, store = database.dsn_of(role), str(tmp_path / "store")
    first = build(spark, catalogue=source, patterns=str(patterns), store=store)
    assert first.record()["matches"] == 10
    database.sql("DELETE FROM broker_core.topics WHERE local_name = 'orders-17'")
    second = build(spark, catalogue=source, patterns=str(patterns), store=store, incremental=True)
    assert second.record()["matches"] == 9
    database.sql(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.parametrize(
    "rest", ["u:123/secret@host/db", "u:secret@secret@host/db", "u:1?secret@host/db", "u:1#secret@host/db"]
)
def test_an_address_that_can_be_read_in_several_ways_goes_nowhere(rest: str) -> None:
    source = PostgresSource(f"postgresql://{rest}", cast(Any, None))
    with pytest.raises(InvalidCatalogue, match="several ways") as caught, source.snapshot():
        pass
    assert "secret" not in str(caught.value)


def test_what_the_driver_quotes_of_an_address_is_not_even_a_cause() -> None:
    source = PostgresSource("postgresql://u:secret/db", cast(Any, None))
    with pytest.raises(InvalidCatalogue, match="no postgresql:// address") as caught, source.snapshot():
        pass
    reported = "".join(traceback.format_exception(caught.value))
    assert "secret" not in reported.replace('"postgresql://u:secret/db"', "")


def test_the_address_of_a_task_is_not_shown() -> None:
    exported = postgres_database._Exported("postgresql://secret", "0-1", ())
    assert "secret" not in repr(exported.stage)


def test_csv_keeps_empty_texts_and_nulls_apart() -> None:
    text = b'"a","n/s","persistent",""\n"b\nc","n/s","persistent",\n"d""","n/s","persistent","x,y"\n'
    (batch,) = postgres_database._parsed(text, 1)
    assert batch.column(0).to_pylist() == ["a", "b\nc", 'd"']
    assert batch.column(3).to_pylist() == ["", None, "x,y"]
    assert batch.schema.types == [pa.large_string()] * 4
    assert list(postgres_database._parsed(b"", 0)) == []
