"""Random chains of changes of a catalogue, with an incremental build after each: equal to whole generations.

A broker that swaps from one to the next has what one has that opens each anew.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Final, Protocol

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.batch.publish_gates import PublishGates
from broker_core_spark.batch.questions.load_questions import load_questions
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.store import open_store
from tests.support.generation_builder import build_generation, mapped_bytes
from tests.support.spark_catalogues import generation_files, questions_about, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ChangedCatalogue", "Name", "SqliteChanges", "check_chain"]

#: Namespace, domain and local name of a topic.
Name = tuple[str, str, str]
KEYS: Final = ("region",)
_LARGE: Final = "public/large"
_REGIONS: Final = (None, "eu", "us")
_SEGMENT_BYTES: Final = 4096
#: Largest numbers of tasks of a build. Without one the driver carries so little work over itself.
_PARTITIONS: Final = (None, 2, 7, 31)
#: Changes of a chain: five have one of each kind and number of tasks, 200 take some five minutes for each kind of
#: catalogue.
CHAIN_TURNS: Final = int(os.environ.get("SPARK_CHAIN_TURNS", "5"))


class ChangedCatalogue(Protocol):
    """A catalogue that is written to. ``source`` is its address for a build."""

    source: str

    def change(self, put: Mapping[Name, str | None], removed: Collection[Name]) -> None:
        """Remove topics, then create or change others, which have this value of the property ``region``."""

    def rewrite(self) -> None:
        """Store the same topics in another way, if there is one."""


class SqliteChanges:
    """An embedded catalogue."""

    def __init__(self, path: Path) -> None:
        self.source = str(path)
        self._path = path

    def change(self, put: Mapping[Name, str | None], removed: Collection[Name]) -> None:
        with SqliteCatalog(self._path, create=not self._path.exists()) as catalog:
            for name in removed:
                catalog.delete(_topic(name))
            for name, region in put.items():
                properties = {} if region is None else {"region": region}
                if catalog.topic(_topic(name)) is None:
                    catalog.create(_topic(name), properties=properties)
                else:
                    catalog.set_properties(_topic(name), properties)

    def rewrite(self) -> None:
        """There is no other way."""


def check_chain(
    spark: SparkSession,
    catalogue: ChangedCatalogue,
    folder: Path,
    *,
    seed: int,
    turns: int = CHAIN_TURNS,
    knows: bool = True,
) -> None:
    """Check the build after each of ``turns`` random changes, of which some are of questions or of topics alone.

    ``knows`` says whether the catalogue knows its changes. Otherwise all names are compared. Whatever is random follows
    from the ``seed``.
    """
    pick = random.Random(seed)
    numbers_of_tasks = _numbers_of_tasks(pick)
    topics = _topics()
    catalogue.change(topics, ())
    patterns = folder / "patterns.jsonl"
    requested = [_LARGE, *(f"tiny/ns-{at}" for at in range(8)), "new/0", "new/1", "no/where"]
    rows = [row for namespace in requested for row in questions_about(namespace)]
    rows += [
        {"namespace": namespace, "pattern": pattern, "properties": {"region": region}}
        for namespace in requested
        for pattern in (None, ".*7")
        for region in ("eu", "us")
    ]
    questions = pick.sample(rows, 90)
    written = 0
    swapped: Generation | None = None
    for turn in range(turns + 1):
        changed = turn not in (0, 2)
        partitions = next(numbers_of_tasks) if changed else pick.choice(_PARTITIONS)
        at = (seed, turn, partitions)
        if changed:
            put, removed = _changes(topics, turn, pick)
            for name in removed:
                del topics[name]
            topics.update(put)
            catalogue.change(put, removed)
        if turn in (2, 3):
            catalogue.rewrite()
        if turn not in (2, 4):
            kept = pick.sample(questions, len(questions) - pick.randrange(6))
            questions = kept + [row for row in pick.sample(rows, 5) if row not in kept]
        write_patterns(patterns, questions)
        result = _built(spark, catalogue.source, patterns, folder / "store", partitions)
        expected = _expected(result, patterns, topics, folder / f"whole-{turn}")
        assert result.generation == expected.id, at
        assert generation_files(folder / "store", result.manifest) == generation_files(
            folder / f"whole-{turn}", expected
        ), at
        swapped = Generation.open(open_store(str(folder / "store")), result.generation, before=swapped)
        whole = Generation.open(open_store(str(folder / f"whole-{turn}")), expected.id)
        assert mapped_bytes(swapped) == mapped_bytes(whole), at
        rmtree(folder / f"whole-{turn}")
        if not turn:
            continue
        assert (result.full_because, result.segments_kept > 0) == ("", True), at
        if turn == 2:  # nothing changed
            assert (result.segments_written, result.postings_written) == (0, 0), at
            assert result.staged == 0 or not knows
        written += result.segments_written
    assert written


def _numbers_of_tasks(pick: random.Random) -> Iterator[int | None]:
    """One for each build after changes: four builds that follow each other have all."""
    while True:
        yield from pick.sample(_PARTITIONS, len(_PARTITIONS))


def _topics() -> dict[Name, str | None]:
    topics: dict[Name, str | None] = {
        (_LARGE, "persistent", f"orders-{number}"): _REGIONS[number % 3] for number in range(600)
    }
    topics |= {(_LARGE, "non-persistent", f"users-{number}"): None for number in range(100)}
    topics |= {
        (f"tiny/ns-{at}", "persistent", f"orders-{number}"): None for at in range(9) for number in range(20)
    }
    return topics


def _changes(
    topics: Mapping[Name, str | None], turn: int, pick: random.Random
) -> tuple[dict[Name, str | None], list[Name]]:
    """Topics that come or change, and those that go: some, a whole namespace, and a name that is another one later."""
    names = sorted(topics)
    removed = {*pick.sample(names, 3), *(name for name in names if name[0] == f"tiny/ns-{turn}")}
    stay = [name for name in names if name not in removed]
    renamed = pick.choice([name for name in stay if name[0] == _LARGE])
    put = {name: pick.choice(_REGIONS) for name in pick.sample(stay, 3) if name != renamed}
    put |= {(f"new/{turn % 3}", "persistent", f"orders-{number}"): "eu" for number in range(turn)}
    put |= {(_LARGE, "persistent", f"orders-{pick.randrange(10_000)}"): None for _ in range(3)}
    put[renamed[0], renamed[1], f"{renamed[2]}-renamed"] = topics[renamed]
    gone = removed | {renamed}
    return {name: region for name, region in put.items() if name not in gone}, sorted(gone)


def _built(
    spark: SparkSession, source: str, patterns: Path, store: Path, partitions: int | None
) -> BuildResult:
    return build(
        spark,
        catalogue=source,
        patterns=str(patterns),
        store=str(store),
        property_keys=KEYS,
        segment_bytes=_SEGMENT_BYTES,
        incremental=True,
        partitions=partitions,
        gates=PublishGates(allow_shrink=True),
    )


def _expected(
    result: BuildResult, patterns: Path, topics: Mapping[Name, str | None], folder: Path
) -> Manifest:
    """The generation of these topics, made in one process; versions and stamps are those of the result."""
    manifest = result.manifest
    questions = load_questions(str(patterns), property_keys=KEYS).questions
    requested = {question.namespace for question in questions}
    there = {namespace for namespace, _, _ in topics} & requested
    known = set(manifest.namespaces)
    # A catalogue with versions knows namespaces that have no topics any more.
    assert known == there if manifest.static else there <= known <= requested
    names: dict[str, dict[str, list[str]]] = {namespace: {} for namespace in known}
    for namespace, domain, local in topics:
        if namespace in known:
            names[namespace].setdefault(domain, []).append(local)
    return build_generation(
        open_store(str(folder)),
        names,
        [question for question in questions if question.namespace in known],
        catalogue_id=manifest.catalogue_id,
        versions=None if manifest.static else manifest.namespaces,
        properties={
            str(_topic(name)): {"region": region} for name, region in topics.items() if region is not None
        },
        property_keys=KEYS,
        segment_bytes=_SEGMENT_BYTES,
        stamps=manifest.stamps,
    )


def _topic(name: Name) -> TopicName:
    namespace, domain, local = name
    return TopicName.parse(f"{domain}://{namespace}/{local}")
