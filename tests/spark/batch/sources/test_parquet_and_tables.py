"""Tables as catalogues: every documented form of columns, and refused ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core_spark.batch.build_errors import InvalidCatalogue, NothingToKeep
from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.job import build
from broker_core_spark.batch.publish_gates import PublishGates
from broker_core_spark.batch.sources import parquet_and_tables
from broker_core_spark.batch.sources.parquet_and_tables import (
    TableSource,
    changed_names,
    in_namespaces,
    texts_of,
)
from broker_core_spark.batch.sources.pinned_table import PinnedTable
from broker_core_spark.batch.staging.staging_area import StagingArea
from tests.support.catalogue_chains import Name, check_chain
from tests.support.spark_catalogues import staged_names, staging_area

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = ("namespace", "domain", "name", "properties")
Found = set[tuple[str, str, str, str | None]]


def found_in(place: StagingArea, runs: list[Any]) -> Found:
    return {(*name, value) for name, value in staged_names(place, runs).items()}


@pytest.mark.parametrize("form", ["map", "struct", "json", "none"])
def test_properties_of_a_parquet_file(spark: SparkSession, tmp_path: Path, form: str) -> None:
    types = {
        "map": pa.map_(pa.string(), pa.string()),
        "struct": pa.struct([("k", pa.string()), ("z", pa.string())]),
        "json": pa.string(),
    }
    values = {
        "map": [[("k", "v"), ("z", "1")], None, []],
        "struct": [{"k": "v", "z": "1"}, None, {"k": None, "z": "1"}],
        "json": ['{"k":"v","z":"1"}', None, "{}"],
    }
    columns: dict[str, Any] = {"topic": pa.array([f"persistent://a/b/t{number}" for number in range(3)])}
    if form != "none":
        columns["properties"] = pa.array(values[form], types[form])
    pq.write_table(pa.table({**columns, "owner": pa.array([1, 2, 3])}), tmp_path / "topics.parquet")
    place = staging_area(tmp_path, "k")
    with TableSource(str(tmp_path / "topics.parquet"), spark).snapshot() as snapshot:
        assert (snapshot.version("a/b"), snapshot.unversioned) == (None, "a Parquet file has no versions")
        found = found_in(place, snapshot.read(place))
    first = None if form == "none" else "v"
    assert found == {("a/b", "persistent", f"t{n}", first if n == 0 else None) for n in range(3)}


def test_a_table_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("x", "a/b", "persistent"), ("y", "a/b", "non-persistent")]
    spark.createDataFrame(rows, "name string, namespace string, domain string").createOrReplaceTempView(
        "topics"
    )
    place = staging_area(tmp_path)
    with TableSource("table:topics", spark).snapshot() as snapshot:
        found = found_in(place, snapshot.read(place))
        assert snapshot.version("a/b") is None
        assert snapshot.unversioned == "only Iceberg and Delta tables have versions"
    assert found == {("a/b", "persistent", "x", None), ("a/b", "non-persistent", "y", None)}


def test_a_table_that_others_write_is_read_as_it_is_now(spark: SparkSession, tmp_path: Path) -> None:
    def names() -> set[tuple[str, str, str, str | None]]:
        place = staging_area(tmp_path)
        with TableSource("table:written_by_others", spark, "a/b").snapshot() as snapshot:
            return found_in(place, snapshot.read(place))

    (tmp_path / "rows").mkdir()
    spark.sql("DROP TABLE IF EXISTS written_by_others")
    for number in range(2):  # the session knows the first file by then
        pq.write_table(pa.table({"name": [f"t-{number}"]}), tmp_path / "rows" / f"{number}.parquet")
        if not number:
            spark.sql(f"CREATE TABLE written_by_others USING parquet LOCATION '{tmp_path / 'rows'}'")
        assert len(names()) == number + 1
    spark.sql("DROP TABLE written_by_others")


def test_a_condition_that_time_or_chance_decides_makes_no_version(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.createDataFrame([("x", 1)], "name string, brand int")
    frame.createOrReplaceTempView("rows_of_versions")
    pinned = PinnedTable(frame, "stamp", lambda _: frame)
    monkeypatch.setattr(TableSource, "_pinned", lambda *_: pinned)
    moving = ("now() > '2000-01-01'", "Rand() < 2", "name IN (SELECT name FROM rows_of_versions)")
    for where, moves in {"brand = 1": False, **dict.fromkeys(moving, True)}.items():
        with TableSource("table:rows_of_versions", spark, "a/b", where).snapshot() as snapshot:
            assert (snapshot.version("a/b") is None) is moves
            assert snapshot.unversioned.startswith("its condition has") is moves


def test_names_in_ranges_are_staged_in_runs_that_do_not_cross(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame that is in ranges, and a file with so many rows that Spark brings them into ranges by itself."""
    session = spark.newSession()
    # Else Spark joins the ranges of so few rows.
    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    topics = [(f"t{number:04}", f"a/{'bc'[number % 2]}") for number in range(2000)]
    frame = session.createDataFrame(topics, "name string, namespace string").repartition(6)
    file = str(tmp_path / "topics.parquet")
    frame.write.parquet(file)
    place = staging_area(tmp_path)
    crossing: list[bool] = []
    tried = ((frame, 0), (frame.repartitionByRange(6, "namespace", "name"), 0), (file, 2000), (file, 1999))
    for rows, most in tried:
        monkeypatch.setattr(parquet_and_tables, "MANY_ROWS", most)
        with TableSource(rows, session).snapshot() as snapshot:
            runs = [run for run in snapshot.read(place) if run.blocks]
        assert len(runs) > 1
        names = [staged_names(place, [run]) for run in runs]
        ends = sorted((min(own), max(own)) for own in names)
        crossing.append(any(last >= first for (_, last), (first, _) in pairwise(ends)))
        assert sum(map(len, names)) == 2000
    assert crossing == [True, False, True, False]


def test_tables_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidCatalogue, match=r"missing\.parquet"),
        TableSource("missing.parquet", spark).snapshot(),
    ):
        pass
    for name, said in (("missing", "missing"), ("numbers VERSION AS OF 7", "ime travel")):
        spark.range(3).createOrReplaceTempView("numbers")
        with pytest.raises(InvalidCatalogue, match=said), TableSource(f"table:{name}", spark).snapshot():
            pass
    pq.write_table(pa.table({"title": ["x"]}), tmp_path / "other.parquet")
    place = staging_area(tmp_path)
    with (
        TableSource(str(tmp_path / "other.parquet"), spark).snapshot() as snapshot,
        pytest.raises(InvalidCatalogue, match="no column 'name' among title"),
    ):
        snapshot.read(place)
    # An invalid name is not tried again, and the task says what is wrong with it.
    pq.write_table(
        pa.table({"name": ["persistent://a/b/fine", "persistent://a/b"]}), tmp_path / "bad.parquet"
    )
    with (
        TableSource(str(tmp_path / "bad.parquet"), spark).snapshot() as snapshot,
        pytest.raises(InvalidCatalogue, match="expected domain"),
    ):
        snapshot.read(place)


def test_rows_without_a_name_and_properties_of_another_type_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = replace(staging_area(tmp_path), property_keys=("region",))
    listed = "array(struct('region' AS key, 'eu' AS value))"
    for columns, said in (
        ("CAST(NULL AS string) AS name", r"no name \(null\)"),
        (
            f"'x' AS name, {listed} AS properties",
            "'properties' is of the type array<struct<key:string,value:string>>",
        ),
        (
            "'x' AS name, map(1, 'eu') AS properties",
            "is of the type map<int,string>: a map of texts, a struct or",
        ),
    ):
        with (
            TableSource(spark.sql(f"SELECT {columns}"), spark, "a/b").snapshot() as snapshot,
            pytest.raises(InvalidCatalogue, match=said),
        ):
            snapshot.read(place)


def test_a_column_in_capitals_is_refused_if_it_would_be_passed_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = {"name": ["t"], "Domain": ["non-persistent"], "PROPERTIES": ['{"region": "eu"}']}
    frame = spark.createDataFrame(pa.table(table))
    for keys, columns, said in (
        ((), ["name", "Domain"], "the column 'Domain' is not read: .*so it would have to be 'domain'"),
        (("region",), ["name", "PROPERTIES"], "'PROPERTIES' is not read"),
        ((), ["name", "PROPERTIES"], None),  # nothing is selected by properties
    ):
        place = replace(staging_area(tmp_path), property_keys=keys)
        with TableSource(frame.select(*columns), spark, "a/b").snapshot() as snapshot:
            if said is None:
                assert sum(sum(run.names.values()) for run in snapshot.read(place)) == 1
            else:
                with pytest.raises(InvalidCatalogue, match=said):
                    snapshot.read(place)
    full = spark.createDataFrame(pa.table({"name": ["persistent://a/b/t"], "Namespace": ["of Kubernetes"]}))
    with TableSource(full, spark).snapshot() as snapshot:
        assert sum(sum(run.names.values()) for run in snapshot.read(staging_area(tmp_path))) == 1


@pytest.mark.parametrize("column", ["deleted", "DELETED"])
def test_deleted_rows_of_a_column_of_versions_are_left_out(
    column: str, spark: SparkSession, tmp_path: Path
) -> None:
    names = [f"persistent://a/b/{name}" for name in ("here", "gone")]
    frame = spark.createDataFrame(pa.table({"name": names, column: [False, True], "v": [1, 2]}))
    with TableSource(frame, spark, versions="v").snapshot() as snapshot:
        assert sum(sum(run.names.values()) for run in snapshot.read(staging_area(tmp_path))) == 1


def test_what_spark_cannot_read_is_an_error_of_the_catalogue(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"name": [f"persistent://a/b/{n}" for n in range(5000)]}), path)
    data = bytearray(path.read_bytes())
    data[4:3000] = bytes(byte ^ 0xA5 for byte in data[4:3000])
    path.write_bytes(data)
    row = ("persistent://a/b/x", ("eu", "us"))
    for source, reason in (
        (str(path), "damaged.parquet"),
        (
            spark.createDataFrame([("persistent://a/b/x", "y")], "name string, NAME string"),
            "DataFrame.*AMBIGUOUS",
        ),
        (
            spark.createDataFrame([row], "name string, properties struct<region:string,Region:string>"),
            "AMBIGUOUS",
        ),
    ):
        with (
            TableSource(source, spark).snapshot() as snapshot,
            pytest.raises(InvalidCatalogue, match=f"Cannot read the catalogue .*{reason}"),
        ):
            snapshot.read(
                replace(staging_area(tmp_path), namespaces=frozenset({"a/b"}), property_keys=("region",))
            )


@pytest.mark.parametrize("named", [frozenset({"a/b"}), None])
@pytest.mark.parametrize(
    ("schema", "row", "said"),
    [
        ("name array<string>", (["x"],), r"'name' is of the type array<string>: texts are expected"),
        ("topic struct<a:string>", (("x",),), r"'topic' is of the type struct<a:string>"),
        ("name int", (7,), "'name' is of the type int"),
        ("name string, namespace array<string>", ("x", ["a/b"]), r"'namespace' is of the type array<string>"),
        ("name string, namespace int", ("x", 7), "'namespace' is of the type int"),
    ],
)
def test_columns_without_texts_are_refused_by_name_and_type(
    spark: SparkSession,
    tmp_path: Path,
    schema: str,
    row: tuple[Any, ...],
    said: str,
    named: frozenset[str] | None,
) -> None:
    place = replace(staging_area(tmp_path), namespaces=named)
    frame = spark.createDataFrame([row], schema)
    frame.createOrReplaceTempView("no_texts")
    for source, shown in ((frame, "DataFrame"), ("table:no_texts", "table:no_texts")):
        with (
            TableSource(source, spark, "a/b").snapshot() as snapshot,
            pytest.raises(InvalidCatalogue, match=f"{shown}: the column {said}"),
        ):
            snapshot.read(place)


@pytest.mark.parametrize("kind", ["varchar(9)", "char(1)", "binary"])
def test_columns_of_bounded_texts_and_of_bytes_are_read(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    place = replace(staging_area(tmp_path), namespaces=frozenset({"a/b"}))
    spark.sql(f"SELECT CAST('x' AS {kind}) AS name, NULL AS namespace").createOrReplaceTempView("bounded")
    with TableSource("table:bounded", spark, "a/b").snapshot() as snapshot:
        assert found_in(place, snapshot.read(place)) == {("a/b", "persistent", "x", None)}


@pytest.mark.parametrize("column", ["topic", "namespace", "properties"])
@pytest.mark.parametrize("kind", ["binary", "text"])
def test_what_is_no_utf8_is_refused_by_column_and_row(
    spark: SparkSession, tmp_path: Path, column: str, kind: str
) -> None:
    spoilt = pa.array([b"", b"\xff\xfe"])
    if kind == "text":
        spoilt = pa.StringArray.from_buffers(2, spoilt.buffers()[1], spoilt.buffers()[2])
    columns = {
        "topic": pa.array(["x", "y"]),
        "namespace": pa.array(["a/b", "a/b"]),
        "properties": pa.array([None, "{}"]),
    }
    if column == "topic":
        columns["namespace"] = pa.array([None, None], pa.string())
    pq.write_table(pa.table({**columns, column: spoilt}), tmp_path / "topics.parquet")
    place = staging_area(tmp_path, "k")
    with (
        TableSource(str(tmp_path / "topics.parquet"), spark).snapshot() as snapshot,
        pytest.raises(InvalidCatalogue, match=f"column '{column}' has no text in UTF-8 in row 2"),
    ):
        snapshot.read(place)


def test_texts_of_bytes_are_read() -> None:
    assert texts_of(pa.array([b"a", None]), "name").to_pylist() == ["a", None]
    with pytest.raises(InvalidCatalogue, match="row 9 of a part"):
        texts_of(pa.array([None, b"\xff"]), "name", 7)


class _ParquetChanges:
    """A folder of Parquet, written anew with each change."""

    def __init__(self, folder: Path) -> None:
        self.source = str(folder)
        self._folder = folder
        self._topics: dict[Name, str | None] = {}

    def change(self, put: Mapping[Name, str | None], removed: Collection[Name]) -> None:
        for name in removed:
            del self._topics[name]
        self._topics.update(put)
        self._write(1)

    def rewrite(self) -> None:
        self._write(3)

    def _write(self, files: int) -> None:
        rows = rows_of(self._topics)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        for number in range(files):
            pq.write_table(pa.Table.from_pylist(rows[number::files]), self._folder / f"part-{number}.parquet")


def rows_of(topics: Mapping[Name, str | None]) -> list[dict[str, str | None]]:
    return [
        {
            "namespace": namespace,
            "domain": domain,
            "name": name,
            "properties": None if region is None else json.dumps({"region": region}),
        }
        for (namespace, domain, name), region in topics.items()
    ]


@pytest.mark.many
def test_random_chains_of_changes_of_a_parquet_folder(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing says what changed: all names are read and compared, and those that came are matched."""
    catalogue = _ParquetChanges(tmp_path / "topics.parquet")
    check_chain(spark, catalogue, tmp_path, seed=8, knows=False)


class _VersionedTable:
    """A table that knows its versions and what changed between them, as Iceberg and Delta do; pinned at the last."""

    source = "table:versioned"

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.versions: list[dict[Name, str | None]] = [{}]
        self.moved = 0

    def change(self, put: Mapping[Name, str | None], removed: Collection[Name]) -> None:
        rest = {name: region for name, region in self.versions[-1].items() if name not in set(removed)}
        self.versions.append(rest | dict(put))
        self.pinned().rows.createOrReplaceTempView("versioned")

    def rewrite(self) -> None:
        self.versions.append(dict(self.versions[-1]))
        self.moved += 1

    def pinned(self) -> PinnedTable:
        rows = self._frame(rows_of(self.versions[-1]))
        return PinnedTable(rows, f"fake {len(self.versions) - 1}", self.changed_rows)

    def changed_rows(self, since: str) -> DataFrame:
        before, now = self.versions[int(since.removeprefix("fake "))], self.versions[-1]
        moved = list(now)[: 10 * self.moved]
        gone = {
            name: before[name] for name in before if name in moved or before[name] != now.get(name, "gone")
        }
        came = {name: now[name] for name in now if name in moved or now[name] != before.get(name, "gone")}
        rows = [{**row, "_change_type": "DELETE"} for row in rows_of(gone)]
        rows += [{**row, "_change_type": "INSERT"} for row in rows_of(came)]
        return self._frame(rows, "_change_type")

    def _frame(self, rows: list[dict[str, str | None]], *more: str) -> DataFrame:
        """A frame by way of Arrow: of rows as they are, Spark makes and pickles one object after the other."""
        schema = pa.schema([(column, pa.string()) for column in (*_COLUMNS, *more)])
        return self.spark.createDataFrame(pa.Table.from_pylist(rows, schema)).coalesce(1)


def test_random_chains_of_changes_of_a_table_with_versions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _VersionedTable(spark)
    monkeypatch.setattr(TableSource, "_pinned", lambda *_: table.pinned())
    check_chain(spark, table, tmp_path, seed=21)


def test_a_namespace_without_topics_gets_some(spark: SparkSession, tmp_path: Path) -> None:
    path, patterns = tmp_path / "topics.parquet", tmp_path / "patterns.jsonl"
    wanted = [("a/b", None), ("new/0", None), ("new/0", "new/0/.*"), ("new/1", None)]
    lines = ({"namespace": name, "pattern": text, "properties": {"region": "eu"}} for name, text in wanted)
    patterns.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = [
        {"name": f"persistent://a/b/{n}", "version": 1, "properties": '{"region": "eu"}'} for n in range(9)
    ]
    more = [{**rows[0], "name": f"persistent://new/0/{n}", "version": 2} for n in range(3)]
    results: list[BuildResult] = []
    for new, counts in (([], {"a/b": 9}), (more, {"a/b": 9, "new/0": 3}), ([], {"a/b": 9, "new/0": 3})):
        rows += new
        pq.write_table(pa.Table.from_pylist(rows), path)
        result = build(
            spark,
            catalogue=str(path),
            patterns=str(patterns),
            store=str(tmp_path / "store"),
            changes="version",
            property_keys=("region",),
            incremental=True,
            gates=PublishGates(allow_shrink=True),
        )
        assert {one.question.namespace: one.count for one in result.totals} == counts
        results.append(result)
    assert (results[-1].full_because, results[-1].segments_written) == ("", 0)


ROWS = [
    ("persistent://a/b/full", None),
    ("non-persistent://a/b/other", None),
    ("persistent://a/b-1/full", None),
    ("persistent://x/y/full", None),
    ("local", "a/b"),
    ("persistent://a/b/said", "a/b"),
    ("local", "x/y"),
    ("local", None),
]


@pytest.mark.parametrize("more", [0, 40])
def test_rows_of_the_asked_namespaces_are_read(spark: SparkSession, more: int) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    frame = spark.createDataFrame(ROWS, "name string, namespace string")
    namespaces = ["a/b", *(f"other/ns-{number}" for number in range(more))]

    def read(*, column: bool, default: str | None) -> list[int]:
        namespace = F.col("namespace") if column else None
        chosen = frame.filter(in_namespaces(F.col("name"), namespace, namespaces, default))
        return sorted(ROWS.index((row["name"], row["namespace"])) for row in chosen.collect())

    # Nobody can say where the last one belongs: staging says so.
    assert read(column=True, default=None) == [0, 1, 4, 5, 7]
    assert read(column=True, default="a/b") == [0, 1, 4, 5, 7]
    assert read(column=True, default="x/y") == [0, 1, 4, 5]
    assert read(column=False, default=None) == [0, 1, 5]
    assert read(column=False, default="x/y") == [0, 1, 5]
    assert read(column=False, default="a/b") == [0, 1, 4, 5, 6, 7]


def test_the_condition_goes_down_to_parquet(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    names = pa.array([f"persistent://a/ns-{number:02}/t" for number in range(50)])
    places = pa.array([f"a/ns-{number:02}" for number in range(50)])
    pq.write_table(pa.table({"name": names, "namespace": places}), tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    for namespace, pushed in (
        (None, "StringStartsWith(name,"),
        ("namespace", "In(namespace"),
    ):
        column = None if namespace is None else F.col(namespace)
        chosen = frame.filter(in_namespaces(F.col("name"), column, ["a/ns-07", "a/ns-08"]))
        chosen.explain()
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "PushedFilters" in line]
        assert pushed in line.partition("PushedFilters")[2]
        assert chosen.count() == 2


_CHANGED = "name string, namespace string, domain string, _change_type string, p0 string"
Row = tuple[str | None, str | None, str | None, str, str | None]


def changes(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, _CHANGED).coalesce(1)


def test_rows_that_were_moved_did_not_change(spark: SparkSession) -> None:
    rows: list[Row] = [
        ("moved", "a/b", None, "DELETE", "eu"),
        ("moved", "a/b", None, "INSERT", "eu"),
        ("there and back", "a/b", None, "delete", None),
        ("there and back", "a/b", None, "insert", None),
        ("twice now", "a/b", None, "INSERT", None),
        ("twice now", "a/b", None, "DELETE", None),
        ("twice now", "a/b", None, "INSERT", None),
        ("gone", "a/b", "non-persistent", "DELETE", None),
        ("persistent://a/c/full", None, None, "INSERT", None),
        ("full", "a/c", None, "INSERT", None),
        ("changed", "a/b", None, "update_preimage", "eu"),
        ("changed", "a/b", None, "update_postimage", "us"),
    ]
    found = changed_names(changes(spark, rows), None)
    assert found == {
        "a/b": {("non-persistent", "gone"), ("persistent", "changed"), ("persistent", "twice now")},
        "a/c": {("persistent", "full")},
    }


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((None, None, None, "INSERT", None), r"no name \(null\)"),
        (("local", None, None, "DELETE", None), "without a namespace"),
        (("persistent://a/b", None, None, "INSERT", None), "expected domain"),
    ],
)
def test_rows_that_are_no_topics(spark: SparkSession, row: Row, reason: str) -> None:
    with pytest.raises(NothingToKeep, match=f"a changed row is no topic: .*{reason}"):
        changed_names(changes(spark, [row]), None)


def test_many_names_are_not_collected(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_and_tables, "MOST_NAMES", 2)
    rows: list[Row] = [(f"t{number}", None, None, "INSERT", None) for number in range(3)]
    assert changed_names(changes(spark, rows[:2]), "a/b") == {
        "a/b": {("persistent", "t0"), ("persistent", "t1")}
    }
    with pytest.raises(NothingToKeep, match="more than 2 names changed"):
        changed_names(changes(spark, rows), "a/b")
