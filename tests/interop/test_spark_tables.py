"""Incremental builds of Iceberg and Delta tables equal full ones, and cost what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.publish_gates import PublishGates
from broker_core_spark.batch.written_table import check_table, write_table
from tests.interop.maven import PeerUnavailable
from tests.interop.spark_tables import DeltaTable, IcebergTable, TopicTable, tables_session
from tests.interop.spark_tables.tables import Row
from tests.support.catalogue_chains import check_chain
from tests.support.spark_catalogues import generation_files, questions_about, temporary_views, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.interop,
    # PySpark 4.1 leaves sockets to the collector.
    pytest.mark.filterwarnings(
        "ignore:unclosed.*socket:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
KEYS = ("region",)
LARGE = "public/large"
SEGMENT_BYTES = 4096
FORMATS = pytest.mark.parametrize("kind", [IcebergTable, DeltaTable], ids=["iceberg", "delta"])


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    try:
        with tables_session(tmp_path_factory.mktemp("tables")) as session:
            yield session
    except PeerUnavailable as error:
        pytest.skip(str(error))


class Builds:
    """Builds of a table into one store, each compared with a full build into a store of its own."""

    def __init__(self, table: TopicTable, folder: Path) -> None:
        self.table = table
        self.folder = folder
        self.patterns = folder / "patterns.jsonl"
        self._turn = 0
        self.ask(
            questions_about(LARGE) + [row for at in range(8) for row in questions_about(f"tiny/ns-{at}")]
        )

    def ask(self, rows: list[dict[str, Any]]) -> None:
        """Ask these questions, and one of a namespace without topics."""
        write_patterns(self.patterns, [*rows, {"namespace": "no/where", "pattern": ".*"}])

    def build(self, store: Path, *, incremental: bool, source: str | None = None, **more: Any) -> BuildResult:
        from broker_core_spark.batch.job import build

        return build(
            self.table.spark,
            catalogue=f"table:{source or self.table.name}",
            patterns=str(self.patterns),
            store=str(store),
            **{"property_keys": KEYS, "segment_bytes": SEGMENT_BYTES, **more},
            gates=PublishGates(allow_shrink=True),
            incremental=incremental,
            partitions=2,
        )

    def incremental(self, **more: Any) -> BuildResult:
        """An incremental build that equals a full one in all bytes."""
        self._turn += 1
        full = self.folder / f"full-{self._turn}"
        expected = self.build(full, incremental=False, **more)
        result = self.build(self.folder / "store", incremental=True, **more)
        assert result.generation == expected.generation
        assert generation_files(self.folder / "store", result.manifest) == generation_files(
            full, expected.manifest
        )
        assert expected.full_because == ""
        return result


def first_rows() -> list[Row]:
    rows: list[Row] = [
        (LARGE, None, f"{word}-{number}", {"region": ("eu", "us")[number % 2], "other": str(number)})
        for number in range(600)
        for word in ("orders", "users")
    ]
    rows += [(LARGE, "non-persistent", f"orders-{number}", None) for number in range(200)]
    rows += [
        (f"tiny/ns-{at}", "persistent", f"orders-{number}", None) for at in range(12) for number in range(20)
    ]
    # A namespace of system topics alone: it is known, and has no names.
    return [*rows, ("tiny/ns-7x", None, "__change_events", None)]


@pytest.fixture
def table(kind: type[TopicTable], spark: SparkSession) -> TopicTable:
    made = kind(spark, "topics")
    made.add(first_rows())
    return made


@FORMATS
def test_an_incremental_build_makes_the_changed_segments_anew(table: TopicTable, tmp_path: Path) -> None:
    builds = Builds(table, tmp_path)
    builds.ask(
        [*questions_about(LARGE), *(row for at in (0, 1, "7x") for row in questions_about(f"tiny/ns-{at}"))]
    )
    first = builds.incremental()
    assert first.full_because == ""
    every = len(first.manifest.segments)
    assert every > 12
    assert "tiny/ns-7x" in first.manifest.namespaces
    assert "no/where" not in first.manifest.namespaces
    # The same version, and the same rows in other files: nothing is read or made.
    for turn in ("same", "compacted"):
        if turn == "compacted":
            table.add([(LARGE, None, "orders-7", {"region": "us", "other": "7"})])
            table.remove([(LARGE, None, "orders-7", None)])
            table.add([(LARGE, None, "orders-7", {"region": "us", "other": "7"})])
            table.rewrite()
        again = builds.incremental()
        assert again.full_because == ""
        assert (again.segments_kept, again.segments_written, again.staged) == (every, 0, 0), turn
    # A property that selects none, one that does, a name more, a name less.
    table.put([(LARGE, None, "orders-8", {"region": "eu", "other": "new"})])
    assert builds.incremental().segments_kept == every
    table.put([(LARGE, None, "orders-8", {"region": "mars"}), (LARGE, None, "orders-x", None)])
    two = builds.incremental()
    assert every - 2 <= two.segments_kept < every
    table.rename((LARGE, None, "orders-9", None), "orders-renamed")
    assert every - 2 <= builds.incremental().segments_kept < every
    # A namespace that nobody asks about changes nothing.
    table.add([("tiny/ns-11", None, "more", None), ("new/one", None, "more", None)])
    unasked = builds.incremental()
    assert (unasked.segments_written, unasked.staged) == (0, 0)
    # The one with system topics alone loses them.
    table.remove([("tiny/ns-7x", None, "__change_events", None)])
    assert "tiny/ns-7x" not in builds.incremental().manifest.namespaces
    table.add([("no/where", None, "a", None)])
    assert "no/where" in builds.incremental().manifest.namespaces


@FORMATS
def test_random_chains_of_changes_equal_full_builds(
    kind: type[TopicTable], spark: SparkSession, tmp_path: Path
) -> None:
    check_chain(spark, kind(spark, "topics"), tmp_path, seed=12)


@pytest.mark.parametrize("kind", [IcebergTable], ids=["iceberg"])
def test_an_iceberg_table_that_does_not_tell_its_changes_is_compared(
    table: IcebergTable, tmp_path: Path
) -> None:
    builds = Builds(table, tmp_path)
    compared = compared_builds(builds)
    more: list[Row] = [(LARGE, None, "more", {"region": "eu"})]
    builds.incremental()
    before = table.version()
    table.add(more)
    assert builds.incremental().full_because == ""
    # An earlier snapshot by its id, and from there to the current one.
    earlier = builds.incremental(source=f"{table.name} VERSION AS OF {before}")
    assert earlier.full_because == ""
    assert builds.incremental().full_because == ""
    table.go_back(before)
    compared()
    # Snapshots between are expired.
    table.add(more)
    table.remove(more)
    table.expire()
    compared()
    table.spark.sql(f"ALTER TABLE {table.name} ADD COLUMN note string")
    table.spark.sql(
        f"INSERT INTO {table.name} SELECT namespace, domain, 'noted', properties, '' FROM {table.name} LIMIT 1"
    )
    compared()
    # Another column of the same name: the last snapshot still has the old one.
    table.rename((LARGE, None, "orders-5", None), "orders-five")
    table.spark.sql(f"ALTER TABLE {table.name} DROP COLUMN properties")
    table.spark.sql(f"ALTER TABLE {table.name} ADD COLUMN properties map<string, string>")
    compared()
    table.rename((LARGE, None, "orders-five", None), "orders-5")
    compared()  # the one before was of no snapshot
    table.create()
    table.add(first_rows())
    compared()
    table.create(**{"write.delete.mode": "merge-on-read"})
    table.add(first_rows())
    compared()
    table.spark.sql(f"DELETE FROM {table.name} WHERE name = 'orders-7'")
    compared()
    compared(where="name <> 'orders-9'")
    compared()
    compared(property_keys=("region", "other"))
    other = builds.incremental(property_keys=("region", "other"), segment_bytes=2 * SEGMENT_BYTES)
    assert "segments of another size" in other.full_because


@FORMATS
def test_a_look_leads_from_the_generation_to_the_table(table: TopicTable, tmp_path: Path) -> None:
    from broker_core_spark.batch.followed_table import follow_table

    def listed() -> dict[tuple[str, str, str], dict[str, str]]:
        rows = table.spark.table(table.name).collect()
        return {
            (row["namespace"], row["domain"] or "persistent", row["name"]): {
                key: value for key, value in (row["properties"] or {}).items() if key in KEYS
            }
            for row in rows
            if row["namespace"] in built.manifest.namespaces
        }

    builds = Builds(table, tmp_path)
    built = builds.build(tmp_path / "store", incremental=False)
    at_first = listed()
    changes: list[Callable[[], None]] = [
        lambda: None,
        lambda: table.put([(LARGE, None, "orders-8", {"region": "mars"}), (LARGE, None, "more", None)]),
        lambda: table.remove([(LARGE, None, "users-9", None), ("tiny/ns-3", "persistent", "orders-3", None)]),
        table.rewrite,
        lambda: table.rename((LARGE, None, "orders-10", None), "orders-ten"),
        lambda: table.add([(LARGE, "non-persistent", "users-9", None), ("new/one", None, "x", None)]),
        lambda: table.put([(LARGE, None, "users-9", {"region": "eu"})]),
    ]
    for number, change in enumerate(changes, 1):
        change()
        look = follow_table(table.spark, catalogue=table.source, store=str(tmp_path / "store"))
        assert (look.generation, look.number) == (built.generation, number)
        expected = {name: properties for name, properties in at_first.items() if name not in look.names}
        expected |= {name: dict(state) for name, state in look.names.items() if state is not None}
        assert expected == listed()
        assert len(look.names) < 10
    table.spark.sql(f"ALTER TABLE {table.name} ADD COLUMN more string")
    with pytest.raises(
        BatchError, match=r"columns of the table were changed.*: (it cannot be followed|build again)"
    ):
        follow_table(table.spark, catalogue=table.source, store=str(tmp_path / "store"))


@pytest.mark.parametrize("kind", [DeltaTable], ids=["delta"])
def test_a_delta_table_that_does_not_tell_its_changes_is_compared(table: DeltaTable, tmp_path: Path) -> None:
    builds = Builds(table, tmp_path)
    compared = compared_builds(builds)
    more: list[Row] = [(LARGE, None, "more", {"region": "eu"})]
    builds.incremental()
    before = table.version()
    table.add(more)
    assert builds.incremental().full_because == ""
    compared(source=f"{table.name} VERSION AS OF {before}")
    assert builds.incremental().full_because == ""
    # A version that is restored is a new one, and the feed has its changes.
    table.go_back(before)
    assert builds.incremental().full_because == ""
    table.spark.sql(f"ALTER TABLE {table.name} ADD COLUMN note string")
    compared()
    for on in ("false", "true"):
        table.spark.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES (delta.enableChangeDataFeed = {on})")
        table.spark.sql(f"DELETE FROM {table.name} WHERE name = 'orders-{on}'")
        table.spark.sql(f"DELETE FROM {table.name} WHERE name = 'orders-7'")
    compared()
    table.create()
    table.add(first_rows())
    compared()


def compared_builds(builds: Builds) -> Any:
    """Builds that read all names and keep the segments without changes."""

    def compared(**more: Any) -> None:
        assert builds.incremental(**more).full_because == ""

    return compared


@pytest.mark.parametrize(("name", "using"), [("lake.db.`{history}`", "iceberg"), ("history", "delta")])
def test_rows_are_appended_to_a_table_that_is_there_by_column_names(
    spark: SparkSession, name: str, using: str
) -> None:
    views = temporary_views(spark)
    spark.sql(f"CREATE TABLE {name} (a BIGINT, b STRING, more STRING) USING {using}")
    check_table(spark, f"table:{name}")
    for columns in ({"a": [1], "b": ["x"]}, {"b": ["y"], "a": [2]}):
        write_table(spark.createDataFrame(pa.table(columns)), f"table:{name}")
    rows = spark.table(name).orderBy("a").collect()
    assert [tuple(row) for row in rows] == [(1, "x", None), (2, "y", None)]
    assert temporary_views(spark) == views
