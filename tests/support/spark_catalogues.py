"""Small catalogues and patterns for tests of the batch, and the expected generations."""

from __future__ import annotations

import io
import json
import uuid
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.names import NamespaceName
from broker_core_spark.batch.incremental.carry_segments import carry_segments
from broker_core_spark.batch.incremental.carry_tasks import added_selectors
from broker_core_spark.batch.incremental.changed_names import NameChanges
from broker_core_spark.batch.incremental.segment_reuse import PreviousGeneration, SegmentReuse, first_key
from broker_core_spark.batch.job import BuildResult
from broker_core_spark.batch.questions.load_questions import load_questions, questions_of_rows
from broker_core_spark.batch.segments.question_totals import question_totals
from broker_core_spark.batch.segments.segment_puts import StoredSegments
from broker_core_spark.batch.segments.staged_selectors import KeptSelectors, stage_selectors
from broker_core_spark.batch.segments.tallies import read_tallies
from broker_core_spark.batch.staging.order_keys import name_of_key, order_key
from broker_core_spark.batch.staging.sorted_runs import (
    RunBlock,
    SortedRun,
    joined_names,
    keyed_names,
    read_blocks,
)
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.format.segment_boundaries import begins_segment
from broker_core_spark.store import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from tests.support.generation_builder import build_generation

__all__ = [
    "Names",
    "changes_of",
    "expected_generation",
    "fill",
    "generation_files",
    "kept_selectors",
    "keyed",
    "questions_about",
    "reread_all",
    "result_of",
    "staged_names",
    "staging_area",
    "temporary_views",
    "write_patterns",
]

#: Namespace, domain and local name, and a value of the selecting property.
Names = Mapping[tuple[str, str, str], str | None]


def fill(path: Path, topics: Mapping[str, Iterable[str | Mapping[str, Any]]]) -> None:
    """Add topics to an embedded catalogue: names, or objects as an import has them."""
    with SqliteCatalog(path, create=True) as catalog:
        for namespace, entries in topics.items():
            lines = [json.dumps({"name": entry} if isinstance(entry, str) else entry) for entry in entries]
            import_topics(catalog, NamespaceName.parse(namespace), io.BytesIO("\n".join(lines).encode()))


def write_patterns(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def questions_about(namespace: str) -> list[dict[str, Any]]:
    """Questions of every kind and mode, duplicates and one that RE2 refuses among them."""
    patterns = [
        None,
        ".*",
        f"persistent://{namespace}/orders-.*",
        f"{namespace}/orders-7",
        f"{namespace}/(orders|users)-[0-9]*[13579]",
        ".*-33.*",
        ".*[02468]",
        f"^{namespace}/.*\\d$",
        "(?i).*ORDERS.*5",
        "nothing",
        "(?=ahead)",
    ]
    modes = ("PERSISTENT", "NON_PERSISTENT", "ALL")
    return [
        {"namespace": namespace, "mode": mode, "pattern": pattern} for mode in modes for pattern in patterns
    ]


def expected_generation(
    catalogue: Path, patterns: Path, folder: Path, *, property_keys: Sequence[str] = (), segment_bytes: int
) -> Manifest:
    """The generation of an embedded catalogue, built in one process pattern by pattern."""
    names: dict[str, dict[str, list[str]]] = {}
    properties: dict[str, Mapping[str, str]] = {}
    versions: dict[str, int | None] = {}
    stamps: dict[str, str] = {}
    with SqliteCatalog(catalogue, create=False) as catalog:
        with catalog.reading() as connection:
            known = [name for (name,) in connection.execute("SELECT name FROM namespaces")]
        for namespace in known:
            with catalog.topics(NamespaceName.parse(namespace)) as (version, records):
                versions[namespace], stamps[namespace] = version.number, version.stamp
                domains = names.setdefault(namespace, {})
                for record in records:
                    full = [name.split("/", 4)[4] for name in record.names]
                    domains.setdefault(record.name.domain, []).extend(full)
                    properties[str(record.name)] = record.properties
        catalogue_id = catalog.catalog_id
    loaded = load_questions(str(patterns), property_keys=property_keys)
    requested = {question.namespace for question in loaded.questions}
    versions = {name: version for name, version in versions.items() if name in requested}
    stamps = {name: stamp for name, stamp in stamps.items() if name in requested}
    return build_generation(
        open_store(str(folder)),
        {name: domains for name, domains in names.items() if name in requested},
        [question for question in loaded.questions if question.namespace in versions],
        catalogue_id=catalogue_id,
        versions=versions,
        properties=properties,
        property_keys=property_keys,
        segment_bytes=segment_bytes,
        stamps=stamps,
    )


def generation_files(folder: Path, manifest: Manifest) -> dict[str, bytes]:
    """The bytes of every file of a generation."""
    names = [*(file.name for file in manifest.files), f"manifests/{manifest.id}.json"]
    return {name: (folder / name).read_bytes() for name in names}


def reread_all(store: Store, manifest: Manifest, questions: Iterable[CanonicalQuestion]) -> StoredSegments:
    """All segments of a generation with these questions, with their tallies."""
    every = [(number, NameChanges()) for number in range(len(manifest.stretches()))]
    return carry_segments(
        store, manifest, every, kept_selectors(store, questions, questions), "temporary/kept", again=1
    )


def keyed(names: Names) -> pa.RecordBatch:
    """Names, as they are staged: in order."""
    keys = {
        (namespace, domain, local): key
        for namespace, domain, column in _by_place(names)
        for local, key in zip(
            column.to_pylist(), order_key(namespace, domain, column).to_pylist(), strict=True
        )
    }
    ordered = sorted(names, key=keys.__getitem__)
    values = pa.array([names[name] for name in ordered], pa.large_string())
    return keyed_names(pa.array([keys[name] for name in ordered], pa.large_binary()), [values])


def _by_place(names: Names) -> Iterator[tuple[str, str, pa.LargeStringArray]]:
    """The local names of each namespace and domain."""
    for (namespace, domain), group in groupby(sorted(names), key=itemgetter(0, 1)):
        yield namespace, domain, pa.array([local for _, _, local in group], pa.large_string())


def changes_of(manifest: Manifest, before: Names, now: Names, *, compared: bool) -> dict[int, NameChanges]:
    """The staged names of each stretch: all of them, or those that changed."""
    changed = {name for name in before.keys() | now.keys() if before.get(name, "-") != now.get(name, "-")}
    firsts = [first_key(stretch[0]) for stretch in manifest.stretches()][1:]

    def shared_out(names: Names) -> list[dict[tuple[str, str, str], str | None]]:
        shares: list[dict[tuple[str, str, str], str | None]] = [{} for _ in range(len(firsts) + 1)]
        for key in keyed(names)["key"].to_pylist():
            name = name_of_key(key)
            shares[bisect_right(firsts, key)][name] = names[name]
        return shares

    begins: list[bytes] = []
    for namespace, domain, column in _by_place(now):
        chosen = pa.array(begins_segment(namespace, domain, column, target=manifest.segment_bytes))
        begins += order_key(namespace, domain, column.filter(chosen)).to_pylist()
    first = keyed(now)["key"][0].as_py()
    run = SortedRun("", (RunBlock(first, 0, 0, 1),), tuple(begins))
    reuse = SegmentReuse(PreviousGeneration(manifest, ()), dict.fromkeys(range(len(firsts) + 1), ()))
    found: dict[int, NameChanges] = {}
    own_of, touched_of = shared_out(now), shared_out(dict.fromkeys(changed))
    for number in reuse.cut_by([run]).carried:
        own, touched = own_of[number], touched_of[number]
        if compared:
            found[number] = NameChanges(None, keyed(own))
            continue
        staged = {name: value for name, value in own.items() if name in touched}
        found[number] = NameChanges(tuple(keyed(touched)["key"].to_pylist()), keyed(staged))
    return found


def kept_selectors(
    store: Store,
    before: Iterable[CanonicalQuestion],
    now: Iterable[CanonicalQuestion],
    *,
    with_properties: bool = False,
) -> KeptSelectors:
    """The selectors of questions before and now, staged in a store."""
    former, requested = required_selectors(before), required_selectors(now)
    added = added_selectors(former, requested, with_properties=with_properties)
    folder = f"temporary/{uuid.uuid4().hex}"
    return KeptSelectors(
        store,
        stage_selectors(store, f"{folder}-before", former),
        stage_selectors(store, f"{folder}-now", requested),
        stage_selectors(store, f"{folder}-added", added),
    )


def result_of(
    folder: Path, rows: Sequence[Mapping[str, Any]], topics: Mapping[str, Sequence[str]]
) -> BuildResult:
    """A build result without Spark, of persistent topics."""
    store = open_store(str(folder))
    loaded = questions_of_rows([("row", row) for row in rows], property_keys=("k",))
    known = [question for question in loaded.questions if question.namespace in topics]
    manifest = build_generation(
        store,
        {namespace: {"persistent": names} for namespace, names in topics.items()},
        known,
        catalogue_id="some-id",
        versions=dict.fromkeys(topics, 3),
        property_keys=("k",),
    )
    reread = reread_all(store, manifest, known)
    return BuildResult(
        generation=manifest.id,
        number=1,
        store=str(folder),
        catalogue="postgresql://host/<db>",
        manifest=manifest,
        totals=question_totals(known, read_tallies(store, reread.tallies)),
        loaded=loaded,
        left_out=tuple(question for question in loaded.questions if question.namespace not in topics),
        staged=manifest.topics,
        duplicates=0,
        system_topics=0,
        segments_written=len(reread.segments),
        segments_kept=0,
        tasks=1,
        builder={
            "user": "ann",
            "host": "host1",
            "pid": 7,
            "run": "run1",
            "version": "0.1",
            "spark": "4.1.0",
            "python": "3.12.0",
            "application": "app-7",
        },
        began=datetime(2026, 3, 1, 10, tzinfo=UTC),
        published=datetime(2026, 3, 1, 10, 15, tzinfo=UTC),
        seconds={"total": 2.5},
    )


def staging_area(tmp_path: Path, *property_keys: str) -> StagingArea:
    """A staging area below a folder."""
    return StagingArea(str(tmp_path / "store"), "temporary/test", property_keys, 1 << 20)


def staged_names(place: StagingArea, runs: Iterable[SortedRun]) -> dict[tuple[str, str, str], str | None]:
    """The staged (namespace, domain, local name) triples, with their first property."""
    store, count = place.open(), len(place.property_keys)
    rows = joined_names(
        [read_blocks(store, run.path, run.blocks, count) for run in runs if run.blocks], count
    )
    values = rows["p0"].to_pylist() if count else [None] * len(rows)
    return dict(zip(map(name_of_key, rows["key"].to_pylist()), values, strict=True))


def temporary_views(spark: SparkSession) -> set[str]:
    """The names of the session's views, which other tests may have left there."""
    return {table.name for table in spark.catalog.listTables() if table.isTemporary}
