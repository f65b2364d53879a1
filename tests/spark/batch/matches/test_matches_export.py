"""The export of matches: equal to brute force, whole or not there, and the one before stays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import re2

from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.job import build
from broker_core_spark.batch.matches import matches_export
from broker_core_spark.batch.matches.match_rows import MATCH_SCHEMA
from broker_core_spark.batch.matches.matches_export import check_matches, matches_folder, write_matches
from broker_core_spark.batch.matches.matches_task import WriteMatches
from broker_core_spark.errors import StoreFailed
from broker_core_spark.store import open_store
from broker_core_spark.store.addressed_folder import addressed_folder
from broker_core_spark.store.publishing import BuildRun
from tests.support.spark_catalogues import fill, result_of, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHEN = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
ROWS = [{"namespace": "a/b", "pattern": ".*"}, {"namespace": "a/b", "mode": "ALL", "pattern": "a/b/.*1"}]


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


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """An address and the options of its bucket."""
    if request.param == "folder":
        return str(tmp_path / "matches"), {}
    return f"s3://generations/{tmp_path.name}/matches", request.getfixturevalue("s3_options")


def test_a_build_exports_what_brute_force_finds(
    spark: SparkSession, tmp_path: Path, place: tuple[str, dict[str, str]]
) -> None:
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
    address, options = place
    result = build(
        spark,
        catalogue=str(tmp_path / "catalogue.sqlite"),
        patterns=str(patterns),
        store=str(tmp_path / "store"),
        property_keys=["region"],
        segment_bytes=4096,
        partitions=5,
        export_matches=address,
        store_options=options,
    )
    expected = brute_force(topics, questions)
    folder = addressed_folder(matches_folder(address, 1), options)
    files = sorted(found.path for found in folder.files())
    assert files[0] == "_SUCCESS"
    assert 1 < len(files) - 1 <= 5
    table = pa.concat_tables([read(place, f"number=1/{name}") for name in files[1:]])
    assert table.schema.equals(MATCH_SCHEMA)
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
    assert table.column("published").unique().to_pylist() == [result.published]
    assert result.record()["matches_export"] == f"{address}/number=1"
    assert result.seconds["matches"] > 0


def read(place: tuple[str, dict[str, str]], path: str) -> pa.Table:
    """A file of an export."""
    address, options = place
    if "://" not in address:
        return pq.ParquetFile(f"{address}/{path}").read()
    from broker_core_spark.store.bucket_store import bucket_client

    return pq.read_table(pa.BufferReader(bytes(obstore.get(bucket_client(address, options), path).bytes())))


@pytest.fixture
def result(tmp_path: Path) -> BuildResult:
    names = [f"t{number}" for number in range(40)]
    return replace(result_of(tmp_path / "store", ROWS, {"a/b": names}), published=WHEN)


def test_the_last_two_exports_stay(spark: SparkSession, tmp_path: Path, result: BuildResult) -> None:
    address = tmp_path / "matches"
    (address / "number=3").mkdir(parents=True)
    (address / "number=3" / "part-of-a-dead-build").touch()
    os.utime(address / "number=3" / "part-of-a-dead-build", (0, 0))
    (address / "number=4").mkdir()
    (address / "number=4" / "part-of-a-build-under-way").touch()
    (address / "notes.txt").touch()
    (address / "number=7").mkdir()
    (address / "number=7" / "part-of-a-store-before").touch()
    for number in (5, 6, 7, 8):
        write_matches(spark, str(address), replace(result, number=number), BuildRun())
    assert sorted(path.name for path in address.iterdir()) == [
        "notes.txt",
        "number=4",
        "number=7",
        "number=8",
    ]
    assert not (address / "number=7" / "part-of-a-store-before").exists()
    (address / "notes.txt").unlink()
    table = pa.dataset.dataset(
        address, format="parquet", partitioning="hive", exclude_invalid_files=True
    ).to_table()
    assert set(table.column("number").to_pylist()) == {7, 8}
    assert spark.read.parquet(str(address)).where("number = 8").count() == 44


def test_a_failure_leaves_nothing(spark: SparkSession, tmp_path: Path, result: BuildResult) -> None:
    address, run = tmp_path / "matches", BuildRun()
    write_matches(spark, str(address), replace(result, number=1), run)
    assert run.folders == []
    postings = tmp_path / "store" / result.manifest.segments[0].postings.name
    whole = postings.read_bytes()
    postings.write_bytes(whole[:-1] + b"\0")
    with pytest.raises(BatchError, match=r"its checksum is not.*; the generation is published"):
        write_matches(spark, str(address), replace(result, number=2), run)
    assert [path.name for path in address.iterdir()] == ["number=1"]
    # Tasks that are still under way may write until the session ends.
    addressed_folder(f"{address}/number=2").write("late", b"")
    run.remove_staged(open_store(str(tmp_path / "store")))
    assert [path.name for path in address.iterdir()] == ["number=1"]


def test_what_tasks_wrote_elsewhere_is_no_export(
    spark: SparkSession, tmp_path: Path, result: BuildResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = WriteMatches
    monkeypatch.setattr(
        matches_export, "WriteMatches", lambda work, _: written(work, str(tmp_path / "of-another-machine"))
    )
    with pytest.raises(BatchError, match="a path is one that the driver and all tasks share"):
        write_matches(spark, str(tmp_path / "matches"), result, BuildRun())
    assert not (tmp_path / "matches").exists()


def test_spark_writes_to_file_systems_of_its_own(
    spark: SparkSession, tmp_path: Path, result: BuildResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matches_export, "is_of_spark", lambda _: True)
    address = f"{tmp_path}/matches"
    check_matches(spark, address)
    write_matches(spark, address, result, BuildRun(), partitions=3)
    rows = spark.read.parquet(address).toArrow()
    own = pq.read_table(tmp_path / "matches", schema=MATCH_SCHEMA)
    assert rows.num_rows == own.num_rows == 44
    assert set(own.column("published").to_pylist()) == {WHEN}
    assert set(rows.column("number").to_pylist()) == {1}
    assert (tmp_path / "matches" / "number=1" / "_SUCCESS").exists()
    with pytest.raises(BatchError, match="44 rows, and the generation has 45 matches"):
        counts = np.add(result.totals.counts, [1, 0])
        more = replace(
            result, totals=type(result.totals)(result.totals.questions, counts, result.totals.crcs)
        )
        write_matches(spark, address, more, BuildRun())
    with pytest.raises(BatchError, match="; the generation is published"):
        write_matches(spark, "nonsense://bucket/x", result, BuildRun())


def test_no_matches_are_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    result = result_of(tmp_path / "store", [{"namespace": "a/b", "pattern": "none"}], {"a/b": []})
    write_matches(spark, str(tmp_path / "matches"), result, BuildRun())
    assert spark.read.parquet(str(tmp_path / "matches")).count() == 0


def test_a_place_that_takes_no_files_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed, match="cannot make the folder"):
        check_matches(None, str(tmp_path / "file"))  # type: ignore[arg-type]
