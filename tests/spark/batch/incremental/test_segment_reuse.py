"""Incremental builds equal full ones after changes of every kind, and keep unchanged segments."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.incremental import carry_tasks
from broker_core_spark.batch.incremental.segment_reuse import read_previous_generation, reusable_segments
from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.batch.publish_gates import PublishGates
from broker_core_spark.batch.questions.load_questions import load_questions
from broker_core_spark.batch.segments.segment_task import ordered_names
from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSource
from broker_core_spark.batch.staging.order_keys import name_of_key
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.manifest import manifest_name
from broker_core_spark.format.segment_boundaries import begins_segment
from broker_core_spark.store import open_store
from broker_core_spark.store.build_records import read_build_record
from broker_core_spark.store.published_pointers import current_pointer
from broker_core_spark.store.publishing import begin_build
from tests.support.catalogue_chains import SqliteChanges, check_chain
from tests.support.spark_catalogues import (
    expected_generation,
    fill,
    generation_files,
    questions_about,
    write_patterns,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEGMENT_BYTES = 3 * 1024
KEYS = ("region",)


ROWS: list[dict[str, Any]] = [
    *questions_about("public/large"),
    *questions_about("tiny/ns-3"),
    {"namespace": "public/large", "pattern": ".*7", "properties": {"region": "eu"}},
    *(
        {"namespace": f"tiny/ns-{number}", "pattern": "none"}
        for number in (*range(40), "33x")
        if number not in (3, 9)
    ),
    {"namespace": "aaaa/first", "pattern": ".*"},
]


def catalogue_of(folder: Path) -> tuple[Path, Path]:
    large: list[Any] = [
        {"name": f"orders-{number}", "properties": {"region": ("eu", "us")[number % 2]}}
        for number in range(1250)
    ]
    others = {f"tiny/ns-{number}": [f"orders-{place}" for place in range(15)] for number in range(40)}
    fill(folder / "catalogue.sqlite", {"public/large": large, **others})
    return folder / "catalogue.sqlite", write_patterns(folder / "patterns.jsonl", ROWS)


def equal_to_full(
    spark: SparkSession, catalogue: Path, patterns: Path, folder: Path, turn: int
) -> BuildResult:
    """Build incrementally, and compare every file with those of a full build in one process."""
    result = build(
        spark,
        catalogue=str(catalogue),
        patterns=str(patterns),
        store=str(folder / "store"),
        property_keys=KEYS,
        segment_bytes=SEGMENT_BYTES,
        incremental=True,
        partitions=2,
        gates=PublishGates(allow_shrink=True),
    )
    full = folder / f"full-{turn}"
    manifest = expected_generation(catalogue, patterns, full, property_keys=KEYS, segment_bytes=SEGMENT_BYTES)
    assert result.generation == manifest.id
    assert generation_files(folder / "store", result.manifest) == generation_files(full, manifest)
    assert result.segments_kept + result.segments_written <= len(manifest.segments)
    return result


def test_an_incremental_build_equals_a_full_one(spark: SparkSession, tmp_path: Path) -> None:
    catalogue, patterns = catalogue_of(tmp_path)
    first = equal_to_full(spark, catalogue, patterns, tmp_path, 0)
    assert first.segments_kept == 0
    every = len(first.manifest.segments)
    assert every > 15
    # Nothing changed: nothing is read, matched or written.
    again = equal_to_full(spark, catalogue, patterns, tmp_path, 1)
    assert (again.segments_kept, again.segments_written, again.staged) == (every, 0, 0)
    # A property of one topic: the postings of its segment at most.
    with SqliteCatalog(catalogue, create=False) as catalog:
        catalog.set_properties(TopicName.parse("persistent://public/large/orders-1234"), {"region": "mars"})
    one = equal_to_full(spark, catalogue, patterns, tmp_path, 2)
    assert (one.segments_kept, one.segments_written) == (every, 0)
    # One that was created anew without its properties, and one with the same: nothing of the former topics stays.
    with SqliteCatalog(catalogue, create=False) as catalog:
        for number, properties in ((1234, {}), (7, {"region": "us"})):
            name = TopicName.parse(f"persistent://public/large/orders-{number}")
            former = catalog.delete(name)
            assert catalog.create(name, properties=properties).topic_id != former.topic_id
    anew = equal_to_full(spark, catalogue, patterns, tmp_path, 9)
    assert (anew.segments_kept, anew.segments_written) == (every, 0)
    # A new namespace in the midst of others, one that loses all of its topics, a topic in the other domain.
    fill(
        catalogue,
        {
            "tiny/ns-33x": ["a", "b"],
            "aaaa/first": ["very-first"],
            "public/large": ["non-persistent://public/large/np"],
        },
    )
    with SqliteCatalog(catalogue, create=False) as catalog:
        for place in range(15):
            catalog.delete(TopicName.parse(f"persistent://tiny/ns-5/orders-{place}"))
    some = equal_to_full(spark, catalogue, patterns, tmp_path, 3)
    assert some.segments_kept > every // 2
    # A namespace that nobody asked about, and one that nobody asks about any more: only their segments are made anew.
    write_patterns(patterns, [*ROWS, {"namespace": "tiny/ns-9", "pattern": ".*1"}])
    result = equal_to_full(spark, catalogue, patterns, tmp_path, 4)
    assert 0 < result.segments_written <= 3
    assert "tiny/ns-9" in result.manifest.namespaces
    write_patterns(patterns, [*ROWS[:-20], *ROWS[-19:], {"namespace": "tiny/ns-9", "pattern": ".*1"}])
    fewer = equal_to_full(spark, catalogue, patterns, tmp_path, 5)
    assert fewer.segments_written <= 3
    assert len(fewer.manifest.namespaces) == len(result.manifest.namespaces) - 1
    # Other questions: the names are kept, and the postings of their namespaces are written.
    rows = [*ROWS[:-20], *ROWS[-19:], {"namespace": "tiny/ns-9", "pattern": ".*1"}]
    rows += [{"namespace": "tiny/ns-9", "pattern": ".*12"}, {"namespace": "tiny/ns-4", "pattern": ".*1"}]
    write_patterns(patterns, rows)
    added = equal_to_full(spark, catalogue, patterns, tmp_path, 6)
    assert (added.segments_kept, added.segments_written, added.staged) == (len(added.manifest.segments), 0, 0)
    assert 0 < added.postings_written <= 2
    # Segments do not have properties: a question with other ones is matched with the catalogue.
    rows += [{"namespace": "tiny/ns-9", "pattern": ".*1", "properties": {"region": "eu"}}]
    write_patterns(patterns, rows)
    selecting = equal_to_full(spark, catalogue, patterns, tmp_path, 7)
    assert 0 < selecting.segments_written <= 3
    write_patterns(patterns, [row for row in rows if row.get("pattern") != ".*[02468]"])
    without = equal_to_full(spark, catalogue, patterns, tmp_path, 8)
    assert (without.segments_written, without.segments_kept) == (0, len(without.manifest.segments))
    assert without.postings_written


@pytest.mark.many
def test_random_chains_of_changes_equal_full_builds(spark: SparkSession, tmp_path: Path) -> None:
    """Topics come, go and change their properties, questions come and go, in any order, and in the same turn."""
    check_chain(spark, SqliteChanges(tmp_path / "catalogue.sqlite"), tmp_path, seed=3)


def test_names_that_begin_segments_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow as pa

    catalogue, patterns = catalogue_of(tmp_path)
    first = equal_to_full(spark, catalogue, patterns, tmp_path, 0)
    begins = [entry for entry in first.manifest.segments if entry.runs[0][0] == "public/large"]
    candidates = pa.array([f"added-{number}" for number in range(20_000)], pa.large_string())
    new = candidates.filter(
        pa.array(begins_segment("public/large", "persistent", candidates, target=SEGMENT_BYTES))
    )
    fill(catalogue, {"public/large": new.to_pylist()[:3]})
    with SqliteCatalog(catalogue, create=False) as catalog:
        for entry in begins[1:4]:
            catalog.delete(TopicName.parse(f"persistent://public/large/{entry.first_local}"))
    second = equal_to_full(spark, catalogue, patterns, tmp_path, 1)
    assert second.segments_kept > 0
    with SqliteCatalog(catalogue, create=False) as catalog:  # the very first name of all
        catalog.delete(
            TopicName.parse(f"persistent://public/large/{second.manifest.segments[0].first_local}")
        )
    equal_to_full(spark, catalogue, patterns, tmp_path, 2)


@pytest.mark.parametrize("incremental", [True, False], ids=["incremental", "full"])
def test_a_build_mends_what_is_damaged(spark: SparkSession, tmp_path: Path, incremental: bool) -> None:
    catalogue, store = tmp_path / "catalogue.sqlite", tmp_path / "store"
    fill(catalogue, {"t/n": [f"orders-{number}" for number in range(400)]})
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "t/n", "pattern": ".*7"}])

    def built(incremental: bool) -> BuildResult:
        return build(
            spark,
            catalogue=str(catalogue),
            patterns=str(patterns),
            store=str(store),
            segment_bytes=1024,
            incremental=incremental,
            partitions=1,
        )

    manifest = built(False).manifest
    assert len(manifest.segments) > 3
    whole = generation_files(store, manifest)
    changed, cut, pipe = (entry.name for entry in manifest.segments[:3])
    # Where nothing changed, an incremental build reads a share of the files whole, and the ends of all.
    (store / changed).write_bytes(b"?" if incremental else whole[changed][:-30] + b"?" + whole[changed][-29:])
    (store / cut).write_bytes(whole[cut][:-5])
    (store / pipe).unlink()
    os.mkfifo(store / pipe)
    mended = built(incremental)
    assert mended.generation == manifest.id
    assert mended.segments_written == 3
    assert mended.segments_kept == (len(manifest.segments) - 3 if incremental else 0)
    assert generation_files(store, manifest) == whole
    # Without the manifest or the questions nothing is known of the last build, and all is made anew.
    for name in (manifest.questions.name, f"manifests/{manifest.id}.json"):
        (store / name).write_bytes(b"\xff" + whole[name][1:])
        assert built(incremental).generation == manifest.id
        assert generation_files(store, manifest) == whole


def test_what_is_kept_is_decided_by_keys(tmp_path: Path) -> None:
    """Random changes never leave a changed name in a kept segment. Without Spark."""
    catalogue, patterns = catalogue_of(tmp_path)
    manifest = expected_generation(
        catalogue, patterns, tmp_path / "store", property_keys=KEYS, segment_bytes=SEGMENT_BYTES
    )
    store = open_store(str(tmp_path / "store"))
    assert current_pointer(store) is None
    previous = read_previous_generation(store, manifest.id)
    questions = load_questions(str(patterns), property_keys=KEYS).questions
    pick = random.Random(5)
    gone = [f"orders-{number}" for number in pick.sample(range(1250), 4)]
    with SqliteCatalog(catalogue, create=False) as catalog:
        for local in gone:
            catalog.delete(TopicName.parse(f"persistent://public/large/{local}"))
    with EmbeddedSource(catalogue).snapshot() as snapshot:
        reuse = reusable_segments(previous, snapshot, questions, target=SEGMENT_BYTES)
        assert len(reuse.carried) >= len(manifest.stretches()) - 2 * len(gone)
        changed = [name_of_key(key)[2] for keys in reuse.carried.values() for key in keys]
        assert set(changed) <= set(gone)
        assert len(changed) == len(gone) or reuse.anew
        assert "public/large" in reuse.namespaces
        with pytest.raises(NothingToKeep, match="segments of another size"):
            reusable_segments(previous, snapshot, questions, target=2 * SEGMENT_BYTES)


def test_a_generation_of_a_lost_state_is_not_built_upon(tmp_path: Path) -> None:
    """A restored catalogue comes to the same version numbers with other topics."""
    catalogue, patterns = catalogue_of(tmp_path)
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(catalogue.read_bytes())
    fill(catalogue, {"tiny/ns-3": ["lost"], "tiny/ns-5": ["lost"]})
    expected_generation(
        catalogue, patterns, tmp_path / "store", property_keys=KEYS, segment_bytes=SEGMENT_BYTES
    )
    store = open_store(str(tmp_path / "store"))
    (manifest,) = (tmp_path / "store" / "manifests").iterdir()
    previous = read_previous_generation(store, manifest.stem)
    copy.replace(catalogue)
    fill(catalogue, {"tiny/ns-3": ["new"], "tiny/ns-5": ["new"]})
    fill(catalogue, {"tiny/ns-5": ["newer"]})
    with EmbeddedSource(catalogue).snapshot() as snapshot:
        since = {name: previous.manifest.version(name) for name in ("tiny/ns-3", "tiny/ns-5")}
        assert snapshot.changes(since, KEYS) == dict.fromkeys(since)
        loaded = load_questions(str(patterns), property_keys=KEYS).questions
        questions = [question for question in loaded if snapshot.version(question.namespace)]
        reuse = reusable_segments(previous, snapshot, questions, target=SEGMENT_BYTES)
    assert {"tiny/ns-3", "tiny/ns-5"} <= reuse.namespaces
    assert reuse.carried


def test_a_manifest_that_lies_about_where_segments_begin_is_not_built_upon(tmp_path: Path) -> None:
    catalogue, patterns = catalogue_of(tmp_path)
    made = expected_generation(
        catalogue, patterns, tmp_path / "store", property_keys=KEYS, segment_bytes=SEGMENT_BYTES
    )
    store = open_store(str(tmp_path / "store"))
    assert read_previous_generation(store, made.id).manifest == made
    for number, local in ((1, "!"), (-1, made.segments[-1].first_local + "!")):
        segments = list(made.segments)
        segments[number] = replace(segments[number], first_local=segments[number].first_local[:-1] + local)
        segments.sort(key=lambda entry: entry.order)
        lie = replace(made, segments=tuple(segments))
        store.put_new(manifest_name(lie.id), lie.data)
        with pytest.raises(InvalidGeneration, match="its first name"):
            read_previous_generation(store, lie.id)
    lie = replace(made, segment_bytes=8 * SEGMENT_BYTES)
    store.put_new(manifest_name(lie.id), lie.data)
    with pytest.raises(InvalidGeneration, match="none that begins a segment"):
        read_previous_generation(store, lie.id)


def test_a_published_manifest_that_lies_is_made_anew(spark: SparkSession, tmp_path: Path) -> None:
    """The checksums of such a generation are right. Only its segments show the lie."""
    catalogue, patterns = tmp_path / "catalogue.sqlite", tmp_path / "patterns.jsonl"
    fill(catalogue, {"public/large": [f"orders-{number}" for number in range(3000)]})
    write_patterns(patterns, [{"namespace": "public/large", "pattern": ".*7"}])
    store = open_store(str(tmp_path / "store"))
    made = expected_generation(
        catalogue, patterns, tmp_path / "store", property_keys=KEYS, segment_bytes=SEGMENT_BYTES
    )
    assert len(made.segments) > 3
    # The number is odd, so that the padded offsets of one name fewer have the same size.
    number = next(at for at, entry in enumerate(made.segments) if at and entry.runs[-1][2] % 2)
    segments = list(made.segments)
    *runs, (namespace, domain, names) = segments[number].runs
    segments[number] = replace(segments[number], runs=(*runs, (namespace, domain, names - 1)))
    published = replace(made, segments=tuple(segments))
    store.put_new(manifest_name(published.id), published.data)
    with begin_build(store) as building:
        assert building.publish(published).number == 1
    fill(catalogue, {"public/large": ["added"]})
    first = equal_to_full(spark, catalogue, patterns, tmp_path, 0)
    assert first.segments_kept == 0
    assert "its runs are not those" in first.full_because
    again = equal_to_full(spark, catalogue, patterns, tmp_path, 1)
    assert again.segments_kept == len(first.manifest.segments)


def test_digests_say_which_stretches_of_a_table_are_as_they_were(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full build records the digests that an increment compares with, and an increment those of a full build."""
    pick = random.Random(5)
    read: list[object] = []

    def counted(*of: Any) -> Any:
        read.append(of)
        return ordered_names(*of)

    monkeypatch.setattr(carry_tasks, "ordered_names", counted)
    names = [f"public/large/orders-{number}" for number in range(1500)]
    patterns = write_patterns(
        tmp_path / "asked.jsonl", [{"namespace": "public/large", "mode": "ALL", "pattern": ".*7"}]
    )

    def built(store: str) -> tuple[BuildResult, dict[str, str]]:
        result = build(
            spark,
            catalogue=str(tmp_path / "topics.parquet"),
            patterns=str(patterns),
            store=str(tmp_path / store),
            segment_bytes=2048,
            incremental=True,
        )
        record = read_build_record(open_store(str(tmp_path / store)), result.generation)
        return result, (record or {})["digests"]

    for turn in range(3):
        table = pa.table({"name": [f"persistent://{name}" for name in names]})
        pq.write_table(table, tmp_path / "topics.parquet")
        result, digests = built("store")
        if turn:  # the first one is a full build
            full = built(f"full-{turn}")
            assert (result.generation, digests) == (full[0].generation, full[1])
        assert all(digests.values())
        assert bool(turn) is (result.segments_kept > len(digests) // 2)
        assert bool(turn) is (
            0 < len(read) < len(digests) // 2
        )  # staged names of the others are not read again
        read.clear()
        # Changed rows are behind the others, as a table has them that is appended to.
        names.remove(pick.choice(names))
        names += [f"{pick.choice(names)}-{turn}" for _ in range(2)]
    result, digests = built("store")
    # Records have no checksum: with other values than texts all names are compared.
    record = tmp_path / "store" / "builds" / f"{result.generation}.json"
    written = json.loads(record.read_text())
    every: tuple[object, ...] = (dict.fromkeys(digests, ()), list(digests))
    for damaged in every:
        record.write_text(json.dumps(written | {"digests": damaged}))
        assert built("store")[0].generation == result.generation
