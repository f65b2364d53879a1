"""Whole builds: equal bytes for any number of partitions, refused patterns, properties, skew."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode, TopicName
from broker_core_spark.batch.build_errors import BatchError, InvalidCatalogue, InvalidPatterns
from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.batch.publish_gates import PublishGates, PublishRefused
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.store import open_store
from broker_core_spark.store.published_pointers import current_pointer, readable_pointers
from tests.support.files import file_with
from tests.support.narrowed import present
from tests.support.spark_catalogues import (
    expected_generation,
    fill,
    generation_files,
    questions_about,
    write_patterns,
)
from tests.support.vectors import pattern_vectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEGMENT_BYTES = 32 * 1024
KEYS = ("region",)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A catalogue of 12,000 names, 90 % of them in one namespace, and patterns."""
    folder = tmp_path_factory.mktemp("inputs")
    large: list[Any] = [
        {"name": f"{word}-{number}", "properties": {"region": ("eu", "us")[number % 2], "other": str(number)}}
        for number in range(3600)
        for word in ("orders", "users")
    ]
    large += [f"non-persistent://public/large/orders-{number}" for number in range(3000)]
    large += [{"name": "split", "partitions": 600}, "\ue000-33", "😀-33", "line\nbreak-1", "__change_events"]
    small = {f"tiny/ns-{number}": [f"orders-{place}" for place in range(12)] for number in range(60)}
    fill(folder / "catalogue.sqlite", {"public/large": large, **small, "empty/one": ["gone"]})
    with SqliteCatalog(folder / "catalogue.sqlite", create=False) as catalog:
        catalog.delete(TopicName.parse("persistent://empty/one/gone"))
    rows = questions_about("public/large") + questions_about("tiny/ns-7") + questions_about("empty/one")
    rows += [
        {"namespace": "public/large", "pattern": ".*-33.*", "properties": {"region": region, "who": "me"}}
        for region in ("eu", "us", "mars")
    ]
    rows += [{"namespace": "public/large", "pattern": f".*-{number}[05].*"} for number in range(40)]
    rows += [{"namespace": "no/where", "pattern": "x", "count": 7, "error": 0, "seconds": 0.5}]
    return folder / "catalogue.sqlite", write_patterns(folder / "patterns.jsonl", rows)


def run(spark: SparkSession, inputs: tuple[Path, Path], store: Path, **more: Any) -> BuildResult:
    options: dict[str, Any] = {"property_keys": KEYS, "segment_bytes": SEGMENT_BYTES, **more}
    return build(spark, catalogue=str(inputs[0]), patterns=str(inputs[1]), store=str(store), **options)


@pytest.fixture(scope="module")
def expected(inputs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("expected")
    manifest = expected_generation(*inputs, folder, property_keys=KEYS, segment_bytes=SEGMENT_BYTES)
    assert len(manifest.segments) > 10
    return generation_files(folder, manifest)


@pytest.mark.parametrize("partitions", [2, 7, 31])
def test_the_bytes_are_the_same_for_any_number_of_partitions(
    spark: SparkSession,
    inputs: tuple[Path, Path],
    expected: dict[str, bytes],
    tmp_path: Path,
    partitions: int,
) -> None:
    result = run(spark, inputs, tmp_path / "store", partitions=partitions)
    assert result.tasks == min(partitions, result.tasks)
    assert generation_files(tmp_path / "store", result.manifest) == expected
    published = present(current_pointer(open_store(str(tmp_path / "store"))))
    assert published.generation == result.generation
    assert not list((tmp_path / "store" / "temporary").iterdir())  # nothing staged is left behind
    # One namespace has nine of ten names, and no task has most of the segments.
    if partitions == 7:
        assert result.tasks in (6, 7)


def test_counts_and_hashes_are_those_of_the_names(
    spark: SparkSession, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    report, table = tmp_path / "report.html", tmp_path / "totals.parquet"
    result = run(spark, inputs, tmp_path / "store", report=report, export_parquet=str(table))
    generation = open_generation(tmp_path / "store", result)
    for total in result.totals:
        answer = present(generation.lookup(total.question))
        names = answer.selection.names.to_pylist()
        assert (total.count, total.topics_hash) == (len(names), topics_hash(names)), total
    assert {question.namespace for question in result.left_out} == {"no/where"}
    assert {one.pattern for one in result.refused} == {"(?=ahead)"}
    assert result.system_topics == 1
    assert result.manifest.namespaces["empty/one"] == 2
    record = json.loads(json.dumps(result.record()))
    assert record["topics"] == result.manifest.topics
    assert record["refused"] == len(result.refused) == 9
    rows = pq.read_table(table).to_pylist()
    assert [row["hash"] for row in rows] == [total.topics_hash for total in result.totals]
    assert next(row["version"] for row in rows if row["namespace"] == "empty/one") == 2
    assert "(?=ahead)" in report.read_text(encoding="utf-8")


def open_generation(store: Path, result: BuildResult) -> Generation:
    return Generation.open(open_store(str(store)), result.generation)


def test_recorded_answers_of_a_real_broker(spark: SparkSession, tmp_path: Path) -> None:
    vectors = pattern_vectors()
    namespace = vectors["namespace"]
    cases = [case for case in vectors["cases"] if case["re2"] and case["outcome"] == "listing"]
    assert len(cases) > 150
    fill(tmp_path / "catalogue.sqlite", {namespace: vectors["stored_names"]})
    rows = [
        {"namespace": namespace, "mode": case["mode"], "pattern": case["topics_pattern"]}
        for case in vectors["cases"]
    ]
    patterns = write_patterns(tmp_path / "patterns.jsonl", rows)
    result = run(spark, (tmp_path / "catalogue.sqlite", patterns), tmp_path / "store", segment_bytes=256)
    differences = []
    generation = open_generation(tmp_path / "store", result)
    for case in cases:
        question = CanonicalQuestion.of(namespace, Mode[case["mode"]], case["topics_pattern"])
        answer = generation.lookup(question)
        wanted = sorted(f"persistent://{namespace}/{name}" for name in case["topics"])
        got = None if answer is None else sorted(answer.selection.names.to_pylist())
        if "\\C" in (case["topics_pattern"] or ""):
            assert answer is None
        elif answer is None or got != wanted or answer.topics_hash != case["topics_hash"]:
            differences.append((case["topics_pattern"], case["mode"]))
    assert differences == []


def test_a_second_build_of_the_same_writes_nothing_new(
    spark: SparkSession, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    first = run(spark, inputs, tmp_path / "store")
    again = run(spark, inputs, tmp_path / "store")
    assert (again.generation, again.segments_written) == (first.generation, 0)
    assert [published.number for published in readable_pointers(open_store(str(tmp_path / "store")))] == [
        2,
        1,
    ]


def test_a_failed_build_leaves_what_is_published(
    spark: SparkSession, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    first = run(spark, inputs, tmp_path / "store")
    names = file_with(tmp_path / "names.txt", "good\nbad/name\n")
    with pytest.raises(InvalidCatalogue, match="line 2"):
        build(
            spark,
            catalogue=str(names),
            patterns=str(inputs[1]),
            store=str(tmp_path / "store"),
            namespace="public/large",
            property_keys=KEYS,
        )
    with pytest.raises(BatchError, match="at least 1"):
        run(spark, inputs, tmp_path / "store", partitions=0)
    (published,) = readable_pointers(open_store(str(tmp_path / "store")))
    assert published.generation == first.generation
    assert not list((tmp_path / "store" / "temporary").iterdir())
    assert not list((tmp_path / "store" / "marks").iterdir())


def test_a_file_of_names_is_a_static_catalogue(spark: SparkSession, tmp_path: Path) -> None:
    names = file_with(tmp_path / "names.txt", "b\na\nb\n")
    patterns = write_patterns(
        tmp_path / "patterns.jsonl", [{"namespace": "public/default", "pattern": ".*a"}]
    )
    result = build(
        spark,
        catalogue=str(names),
        patterns=str(patterns),
        store=str(tmp_path / "store"),
        namespace="public/default",
    )
    assert result.manifest.static
    assert result.manifest.namespaces == {"public/default": None}
    assert (result.manifest.topics, result.totals[0].count) == (2, 1)
    assert result.record()["duplicate_topics"] == 1


def test_a_catalogue_without_topics(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path / "catalogue.sqlite", {"public/default": ["one"]})
    with SqliteCatalog(tmp_path / "catalogue.sqlite", create=False) as catalog:
        catalog.delete(TopicName.parse("persistent://public/default/one"))
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "public/default", "pattern": ".*"}])
    result = run(spark, (tmp_path / "catalogue.sqlite", patterns), tmp_path / "store")
    assert (result.manifest.topics, result.totals[0].count, result.totals[0].topics_hash) == (
        0,
        0,
        "00000000",
    )
    generation = open_generation(tmp_path / "store", result)
    answer = present(generation.lookup(result.totals[0].question))
    assert answer.count == 0


def test_learned_questions_outlive_a_restart_of_the_broker(spark: SparkSession, tmp_path: Path) -> None:
    catalogue, patterns = tmp_path / "catalogue.sqlite", tmp_path / "patterns.jsonl"
    fill(catalogue, {"a/b": [f"t-{number}" for number in range(20)]})
    now = datetime.now(UTC)

    def built(*rows: tuple[str, int], **more: Any) -> BuildResult:
        """A build of an export: patterns, and how many days ago they were asked last."""
        learned = [
            {"namespace": "a/b", "pattern": pattern, "last_asked": (now - timedelta(days=days)).isoformat()}
            for pattern, days in rows
        ]
        write_patterns(patterns, learned)
        return run(spark, (catalogue, patterns), tmp_path / "store", **more)

    first = built(("a/b/t-1.*", 0), ("a/b/t-2", 20))
    again = built()  # the broker has just started
    assert (again.generation, again.loaded.kept) == (first.generation, 2)
    third = built(("a/b/t-3", 0), keep_learned=10 * 86400.0)
    assert {total.question.selector.pattern for total in third.totals} == {"a/b/t-1.*", "a/b/t-3"}
    with pytest.raises(PublishRefused, match=r"0 questions, and generation .* has 2"):
        built(keep_learned=0)
    assert (
        built(("a/b/t-3", 0), keep_learned=0, gates=PublishGates(allow_shrink=True)).record()["questions"]
        == 1
    )


def test_a_catalogue_that_is_half_empty_is_not_published(spark: SparkSession, tmp_path: Path) -> None:
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "a/b", "pattern": ".*"}])
    names = tmp_path / "names.txt"
    store = tmp_path / "store"

    def built(count: int, **more: Any) -> BuildResult:
        names.write_text("".join(f"t-{number}\n" for number in range(count)), encoding="utf-8")
        where: dict[str, Any] = {
            "catalogue": str(names),
            "patterns": str(patterns),
            "store": str(store),
            "namespace": "a/b",
        }
        return build(spark, **where, **more)

    first = built(100)
    with pytest.raises(
        PublishRefused, match=r"49 topics in the namespaces of the questions, and generation .* has 100"
    ):
        built(49)
    (published,) = readable_pointers(open_store(str(store)))
    assert published.generation == first.generation
    assert not list((store / "temporary").iterdir())
    assert built(50).number == 2


def test_rows_that_are_no_topics_are_left_out_by_a_condition(spark: SparkSession, tmp_path: Path) -> None:
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "a/b", "pattern": ".*"}])
    names = [f"persistent://a/b/t-{number}" for number in range(30)]
    names[7] = "persistent://a/b/c/d"
    catalogue, report = tmp_path / "topics.parquet", tmp_path / "report.html"
    pq.write_table(pa.table({"name": names}), catalogue)

    def built(**more: Any) -> BuildResult:
        where: dict[str, Any] = {"catalogue": str(catalogue), "patterns": str(patterns)}
        return build(spark, store=str(tmp_path / "store"), **{**where, **more})

    with pytest.raises(InvalidCatalogue, match=r"Invalid topic name .c/d.: a local name has no"):
        built()
    topics = "name RLIKE '^persistent://[^/]+/[^/]+/[^/]+$'"
    result = built(where=topics, report=report)
    assert (result.manifest.topics, result.rows_left_out, result.record()["rows_left_out"]) == (29, 1, 1)
    assert "<td>Rows left out</td><td>1</td>" in report.read_text(encoding="utf-8")
    assert built(where=topics, incremental=True).segments_written == 0
    # Null is not true.
    assert built(where="CASE WHEN name RLIKE '-[12].$' THEN true END").rows_left_out == 10
    with pytest.raises(InvalidCatalogue, match=r"Cannot read the catalogue .*nobody"):
        built(where="nobody = 1")
    with pytest.raises(InvalidCatalogue, match="is no table: --where"):
        built(where=topics, catalogue=str(patterns))


def test_rows_that_are_no_frame_of_spark_are_an_error_that_says_what_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    fill(tmp_path / "catalogue.sqlite", {"a/b": ["x"]})
    rows: list[Any] = [{"namespace": "a/b", "pattern": "x"}]
    names: Any = pd.DataFrame({"name": ["persistent://a/b/x"]})
    given: dict[str, Any] = {
        "catalogue": str(tmp_path / "catalogue.sqlite"),
        "patterns": str(write_patterns(tmp_path / "patterns.jsonl", rows)),
        "store": str(tmp_path / "store"),
    }
    expected = "an address \\(a text\\) or a DataFrame of Spark is expected"
    for catalogue in (names, [names, names], tmp_path, None):
        with pytest.raises(InvalidCatalogue, match=f"^a catalogue of the type [a-z]+.*: {expected}"):
            build(spark, **{**given, "catalogue": catalogue})
    for source in (rows, names, tmp_path):
        for wrong in ({"patterns": source}, {"always": source}):
            with pytest.raises(InvalidPatterns, match=f"^patterns of the type [a-z]+.*: {expected}"):
                build(spark, **{**given, **wrong})


def test_frames_in_and_frames_out(spark: SparkSession, tmp_path: Path) -> None:
    names = [f"t-{number}" for number in range(300)]
    kind = pa.schema(
        {"name": pa.string(), "namespace": pa.string(), "properties": pa.map_(pa.string(), pa.string())}
    )
    topics = pa.table({"name": names, "namespace": ["a/b"] * 300, "properties": [[("k", "v")]] * 300}, kind)
    requested = pa.table({"namespace": ["a/b"] * 2, "pattern": [".*7", "(?=x)"], "count": [5, 1]})
    given: dict[str, Any] = {"patterns": spark.createDataFrame(requested), "store": str(tmp_path / "store")}
    shuffled = spark.createDataFrame(topics).repartition(7)
    result = build(spark, catalogue=shuffled, property_keys=["k"], **given)
    assert result.record()["catalogue"] == "DataFrame"
    assert result.patterns == "DataFrame"
    (row,) = result.totals_frame(spark).collect()
    assert (row["pattern"], row["count"]) == (".*7", 30)
    assert result.matches_frame(spark).count() == 30
    # The order of rows makes no difference.
    again = build(spark, catalogue=spark.createDataFrame(topics), property_keys=["k"], **given)
    assert again.generation == result.generation
    with pytest.raises(InvalidCatalogue, match="DataFrame: no column 'name' among title"):
        build(spark, catalogue=spark.createDataFrame(pa.table({"title": ["x"]})), **given)
    with pytest.raises(
        InvalidCatalogue, match=r"local name without a namespace.*\(columns: name, properties\)"
    ):
        build(spark, catalogue=shuffled.drop("namespace"), property_keys=["k"], **given)
    # Other columns are ignored, so a misspelt one shows in the answers alone.
    by_property = pa.table({"namespace": ["a/b"], "properties": ['{"k": "v"}']})
    asked = {**given, "patterns": spark.createDataFrame(by_property), "property_keys": ["k"]}
    assert build(spark, catalogue=shuffled, **asked).notes == ()
    (note,) = build(spark, catalogue=shuffled.withColumnRenamed("properties", "props"), **asked).notes
    assert note.startswith("empty: 1 question by the property 'k' without a topic")
    with pytest.raises(InvalidPatterns, match="DataFrame: the table has no column 'namespace'"):
        build(spark, catalogue=shuffled, **{**given, "patterns": shuffled.select("name")})
