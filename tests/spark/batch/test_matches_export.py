"""The matches of a generation: equal to brute force, as a frame and as Spark writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import re2

from broker_core.names import Mode
from broker_core_spark.batch import matches_export
from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.job import build
from broker_core_spark.batch.matches_export import (
    MATCH_SCHEMA,
    match_batches,
    matches_address,
    matches_of_shares,
    question_columns,
    write_matches,
)
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.segment_layout import KIND_BITS, KIND_RANGE, KIND_ROWS
from broker_core_spark.store import open_store
from tests.support.generation_builder import build_generation, stored_runs
from tests.support.spark_catalogues import fill, result_of, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHEN = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
ROWS = [{"namespace": "a/b", "pattern": ".*"}, {"namespace": "a/b", "mode": "ALL", "pattern": "a/b/.*1"}]
PATTERNS = (None, "a/b/t-0.*", ".*[02468]", ".*-77", ".*(03|77)", "nothing")


def brute_force(
    topics: Mapping[str, list[dict[str, Any]]], questions: list[dict[str, Any]]
) -> list[tuple[str, str, str, str, str]]:
    """(namespace, mode, pattern, region, topic) of all matches, sorted."""
    found = set()
    for question in questions:
        mode, pattern, region = (
            question.get("mode", "PERSISTENT"),
            question["pattern"],
            question["properties"].get("region"),
        )
        for topic in topics[question["namespace"]]:
            domain, _, local = topic["name"].rpartition("://")
            domain, local = domain or "persistent", local.rpartition("/")[2]
            if mode not in ("ALL", domain.upper().replace("-", "_")):
                continue
            if region is not None and topic["properties"].get("region") != region:
                continue
            if re2.fullmatch(pattern, f"{question['namespace']}/{local}"):
                full = f"{domain}://{question['namespace']}/{local}"
                found.add((question["namespace"], mode, pattern, region or "", full))
    return sorted(found)


def test_a_build_exports_what_brute_force_finds(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(16)
    topics = {
        namespace: [
            {
                "name": f"{random.choice(('', 'non-persistent://' + namespace + '/'))}{word}-{number}",
                "properties": {"region": random.choice(("eu", "us"))},
            }
            for number in range(size)
            for word in ("orders", "users")
        ]
        for namespace, size in (("public/large", 900), ("tiny/one", 9), ("tiny/two", 1))
    }
    questions = [
        {
            "namespace": random.choice(list(topics)),
            "mode": random.choice(("PERSISTENT", "NON_PERSISTENT", "ALL")),
            "pattern": random.choice((".*[02468]", f".*-{number}", f"{namespace}/or.*", ".*s-[0-9]*7.*")),
            "properties": random.choice(({}, {"region": "eu"}, {"region": "us"})),
        }
        for number in range(60)
        for namespace in topics
    ]
    fill(tmp_path / "catalogue.sqlite", topics)
    patterns = write_patterns(tmp_path / "patterns.jsonl", questions)
    address = str(tmp_path / "matches")
    result = build(
        spark,
        catalogue=str(tmp_path / "catalogue.sqlite"),
        patterns=str(patterns),
        store=str(tmp_path / "store"),
        property_keys=["region"],
        segment_bytes=4096,
        partitions=5,
        export_matches=address,
    )
    expected = brute_force(topics, questions)
    files = sorted(path.name for path in (tmp_path / "matches" / "number=1").glob("[_p]*"))
    assert files[0] == "_SUCCESS"
    assert 1 < len(files) - 1 <= 5
    table = pq.read_table(tmp_path / "matches" / "number=1")
    assert table.schema.names == MATCH_SCHEMA.names
    assert (
        sorted(
            (
                row["namespace"],
                row["mode"],
                row["pattern"],
                dict(row["properties"]).get("region", ""),
                row["topic"],
            )
            for row in table.to_pylist()
        )
        == expected
    )
    assert result.totals.matches == len(expected) == len(table)
    assert table.column("generation").unique().to_pylist() == [result.generation]
    assert {when.replace(tzinfo=UTC) for when in table.column("published").to_pylist()} == {result.published}
    assert result.record()["matches_export"] == f"{address}/number=1"
    assert result.seconds["matches"] > 0


@pytest.fixture
def result(tmp_path: Path) -> BuildResult:
    names = [f"t{number}" for number in range(40)]
    return replace(result_of(tmp_path / "store", ROWS, {"a/b": names}), published=WHEN)


def written(spark: SparkSession, address: str, result: BuildResult) -> None:
    frame = result.matches_frame(spark, partitions=3)
    place = matches_address(address, result.number)
    write_matches(frame, place, result.manifest.segments, result.totals.matches)


def test_matches_are_a_frame_that_any_writer_takes(
    spark: SparkSession, tmp_path: Path, result: BuildResult
) -> None:
    frame = result.matches_frame(spark, partitions=3)
    assert frame.rdd.getNumPartitions() <= 3
    rows = frame.toArrow()
    assert rows.schema.names == MATCH_SCHEMA.names
    assert rows.num_rows == 44
    assert set(rows.column("published").to_pylist()) == {WHEN}
    frame.write.partitionBy("mode").orc(str(tmp_path / "orc"))
    assert spark.read.orc(str(tmp_path / "orc")).where("mode = 'ALL'").count() == 4


def test_each_generation_has_a_folder_of_its_own(
    spark: SparkSession, tmp_path: Path, result: BuildResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "matches")
    for number in (7, 8, 8):
        written(spark, address, replace(result, number=number))
    rows = spark.read.parquet(address)
    assert {row["number"]: row["count"] for row in rows.groupBy("number").count().collect()} == {7: 44, 8: 44}
    assert (tmp_path / "matches" / "number=8" / "_SUCCESS").exists()
    counts = np.add(result.totals.counts, [1, 0])
    more = replace(result, totals=type(result.totals)(result.totals.questions, counts, result.totals.crcs))
    with pytest.raises(BatchError, match="44 rows, and the generation has 45 matches"):
        written(spark, address, more)
    with pytest.raises(BatchError, match=r"nonsense://bucket/x/number=1: .*by connectors of its own"):
        written(spark, "nonsense://bucket/x", result)
    monkeypatch.setattr(matches_export, "write_table", lambda *_: None)  # as tasks of other machines do
    (tmp_path / "matches" / "number=9").mkdir()
    with pytest.raises(BatchError, match=r"Cannot write the table .*UNABLE_TO_INFER_SCHEMA"):
        written(spark, address, replace(result, number=9))
    monkeypatch.undo()
    name = f"table:matches_{tmp_path.name}"
    for _ in range(2):
        written(spark, name, result)
    assert spark.table(name.removeprefix("table:")).count() == 88
    spark.sql(f"DROP TABLE {name.removeprefix('table:')}")


def test_a_damaged_file_is_no_export(spark: SparkSession, tmp_path: Path, result: BuildResult) -> None:
    postings = tmp_path / "store" / result.manifest.segments[0].postings.name
    whole = postings.read_bytes()
    postings.write_bytes(whole[:-1] + b"\0")
    with pytest.raises(BatchError, match="Cannot write the table"):
        written(spark, str(tmp_path / "matches"), result)
    assert not (tmp_path / "matches" / "number=1" / "_SUCCESS").exists()


def test_no_matches_are_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    result = result_of(tmp_path / "store", [{"namespace": "a/b", "pattern": "none"}], {"a/b": []})
    written(spark, str(tmp_path / "matches"), result)
    assert spark.read.parquet(str(tmp_path / "matches")).count() == 0


def test_a_share_has_the_rows_of_its_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches_export, "_ROWS", 400)
    names = [f"t{number:04}" for number in range(3000)]
    result = result_of(tmp_path / "store", ROWS[:1], {"a/b": names})
    shares: list[Sequence[int]] = [range(len(result.manifest.segments)), []]
    numbers = [pa.record_batch([pa.array([1, 0])], ["id"])]
    batches = list(matches_of_shares(result.store, {}, result.generation, WHEN, shares, numbers))
    assert max(batch.num_rows for batch in batches) <= 400
    assert all(batch.schema.equals(MATCH_SCHEMA) for batch in batches)
    topics = pa.Table.from_batches(batches).column("topic").to_pylist()
    assert topics == [f"persistent://a/b/{name}" for name in names]


def names_of(pattern: str | None, names: list[str]) -> list[str]:
    """What a pattern of this test picks."""
    return [name for name in names if pattern is None or re2.fullmatch(pattern, f"a/b/{name}")]


@pytest.mark.parametrize("most", [1, 7, 100_000])
def test_every_kind_of_postings_and_every_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(matches_export, "_ROWS", most)
    names = {
        domain: [f"t-{number:04}" for number in range(size)]
        for domain, size in (("persistent", 400), ("non-persistent", 30))
    }
    questions = [CanonicalQuestion.of("a/b", mode, pattern) for mode in Mode for pattern in PATTERNS]
    store = open_store(str(tmp_path))
    manifest = build_generation(
        store, {"a/b": names}, questions, catalogue_id="id", versions={"a/b": 1}, segment_bytes=2048
    )
    lines = [question.line for question in questions]
    lines += [CanonicalQuestion.of("a/c", Mode.ALL, ".*").line]
    columns = question_columns(lines, {"a/b"})
    assert set(columns) == {("a/b", mode) for mode in Mode}
    found: list[dict[str, Any]] = []
    kinds: set[int] = set()
    for entry in manifest.segments:
        for run in stored_runs(store, entry):
            kinds |= set(run.postings.entries["kind"].tolist())
            for batch in match_batches(run, columns, "some-id", WHEN):
                assert 0 < batch.num_rows <= most
                assert batch.schema.equals(MATCH_SCHEMA)
                found += batch.to_pylist()
    assert kinds == {KIND_RANGE, KIND_ROWS, KIND_BITS}
    expected = sorted(
        (mode.name, pattern or "", f"{domain}://a/b/{name}")
        for mode in Mode
        for pattern in PATTERNS
        for domain, known in names.items()
        if mode.lists(domain)
        for name in names_of(pattern, known)
    )
    assert sorted((row["mode"], row["pattern"] or "", row["topic"]) for row in found) == expected
    assert {(row["namespace"], row["generation"], row["published"]) for row in found} == {
        ("a/b", "some-id", WHEN)
    }


def test_long_patterns_make_small_batches(tmp_path: Path) -> None:
    pattern = f"a/b/t({'|'.join(['x' * 1000] * 900)}|.*)"
    question = CanonicalQuestion.of("a/b", Mode.ALL, pattern, {"k": "v"})
    columns = question_columns([question.line], {"a/b"})["a/b", Mode.ALL]
    assert columns["properties"].to_pylist() == [[("k", "v")]]
    assert columns["key"] == pa.array([question.selector.key], pa.binary(16))
    names = {"a/b": {"persistent": [f"t{number:03}" for number in range(100)]}}
    store, question = open_store(str(tmp_path)), CanonicalQuestion.of("a/b", Mode.ALL, pattern)
    (entry,) = build_generation(store, names, [question], catalogue_id="id").segments
    (run,) = stored_runs(store, entry)
    batches = list(match_batches(run, question_columns([question.line], {"a/b"}), "some-id", WHEN))
    assert sum(batch.num_rows for batch in batches) == 100
    assert 1 <= max(batch.num_rows for batch in batches) <= 37
