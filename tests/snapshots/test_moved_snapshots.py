"""Snapshots that are moved by changes equal those that are read: rows, order, hash, selections, in any chunks."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from broker_core.catalog.move_or_read_snapshot import load_snapshot
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.store.topic_rows import Edit
from broker_core.catalog.topic_decisions import creation, deletion
from broker_core.change_log import CatalogVersion, Change, Changes, Operation
from broker_core.listing.chunks.build_chunks import build_chunks
from broker_core.listing.listing import data_of, listing_of
from broker_core.listing.listing_data import ListingData
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName, TopicName
from broker_core.names.listed_names import NOTHING, ListedNames
from broker_core.snapshots import Snapshot
from tests.support.chunks import tiny_chunks
from tests.support.name_changes import name_changes_of
from tests.support.narrowed import of_type

NAMESPACE = NamespaceName("a", "b")
KEYS = ("region", "team")
NONE: Mapping[str, str] = {}
SYLLABLES = ("a", "b", "-", "é", "￮", "😀", "\ue000", "1", "-partition-1", "!")

Topic = tuple[ListedNames, Mapping[str, str]]


class World:
    """Topics and the changes of them, at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.topics: dict[TopicName, Topic] = {}
        self.version = 0

    def change(self) -> Change:
        """Make, change or take away one topic."""
        choose = self.random
        name, (before, properties) = self._topic()
        after, to = before, properties
        if not before:
            after, to = self._listed(), self._properties()
        else:
            match choose.randrange(4):
                case 0:
                    after, to = NOTHING, NONE
                case 1:
                    after = self._listed()
                case _:
                    to = self._properties()
        if after:
            self.topics[name] = (after, to)
        else:
            del self.topics[name]
        return Change(
            self.version,
            Operation.UPDATE if before and after else Operation.CREATE if after else Operation.DELETE,
            name,
            uuid.UUID(int=0),
            before,
            after,
            properties,
            to,
            datetime.fromtimestamp(0, UTC),
        )

    def changes(self, count: int) -> Changes:
        """Some of them in one version."""
        since = self.catalog_version
        self.version += 1
        return Changes(since, self.catalog_version, tuple(self.change() for _ in range(count)))

    @property
    def catalog_version(self) -> CatalogVersion:
        return CatalogVersion("id", self.version)

    def snapshot(self, mode: Mode) -> Snapshot:
        """All of it, made anew."""
        names: dict[str, list[str]] = {PERSISTENT: [], NON_PERSISTENT: []}
        values: dict[str, dict[str, list[str | None]]] = {
            domain: {key: [] for key in KEYS} for domain in names
        }
        for topic, (listed, properties) in self.topics.items():
            for name in listed.names(topic.local):
                if mode.lists(topic.domain):
                    names[topic.domain].append(name)
                    for key, column in values[topic.domain].items():
                        column.append(properties.get(key))
        chunks = build_chunks(
            NAMESPACE,
            column_of(names[PERSISTENT]),
            column_of(names[NON_PERSISTENT]),
            {
                domain: {key: column_of(column) for key, column in each.items()}
                for domain, each in values.items()
            },
        )
        return Snapshot(self.catalog_version, listing_of(ListingData(NAMESPACE, mode, chunks)), KEYS)

    def _topic(self) -> tuple[TopicName, Topic]:
        choose = self.random
        if self.topics and choose.random() < 0.5:
            name = choose.choice(list(self.topics))
        elif choose.random() < 0.02:
            name = TopicName(PERSISTENT, NAMESPACE, "__change_events")
        else:
            domain = PERSISTENT if choose.random() < 0.8 else NON_PERSISTENT
            local = "".join(choose.choices(SYLLABLES, k=choose.randrange(1, 6)))
            name = TopicName(domain, NAMESPACE, TopicName.split_local(local + "x")[0])
        return name, self.topics.get(name, (NOTHING, NONE))

    def _listed(self) -> ListedNames:
        if self.random.random() < 0.6:
            return ListedNames(plain=True)
        return ListedNames.of_indices(self.random.sample(range(13), self.random.randrange(1, 5)))

    def _properties(self) -> Mapping[str, str]:
        made = {}
        for key in (*KEYS, "other"):
            if self.random.random() < 0.6:
                made[key] = self.random.choice(["1", "2", f"{self.random.randrange(1000)}"])
        return made


def column_of(values: Sequence[str | None]) -> pa.LargeStringArray:
    return pa.array(values, pa.large_string())


QUESTIONS: Sequence[Mapping[str, str]] = ({}, {"region": "1"}, {"region": "2", "team": "1"}, {"team": "none"})

Seen = tuple[list[str], str, list[list[str]]]


def seen(snapshot: Snapshot) -> Seen:
    """The names, the hash, and what is selected."""
    listing = snapshot.listing
    return (
        listing.names.to_pylist(),
        listing.topics_hash,
        [snapshot.select(pairs).names.to_pylist() for pairs in QUESTIONS],
    )


def walk(world: World, mode: Mode, blocks: Sequence[int], look_every: int) -> Iterator[Snapshot]:
    """Move a snapshot by blocks of so many changes; now and then it is compared with all that there is."""
    snapshot = world.snapshot(mode)
    for number, count in enumerate(blocks):
        changes = world.changes(count)
        before = snapshot
        snapshot = snapshot.moved(name_changes_of(NAMESPACE, changes))
        assert snapshot.version == world.catalog_version
        if number % look_every == 0:
            assert seen(snapshot) == seen(world.snapshot(mode))
        yield before
    assert seen(snapshot) == seen(world.snapshot(mode))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("chunks", ["usual", "tiny"])
def test_after_any_changes_it_is_as_if_it_were_read(mode: Mode, chunks: str) -> None:
    pinned: list[tuple[Snapshot, Seen]] = []
    with tiny_chunks(300) if chunks == "tiny" else nullcontext():
        world = World(seed=mode.value)
        blocks = [200, *[1] * 60, 50, *[1] * 20, 150, *[7] * 10]
        for number, before in enumerate(walk(world, mode, blocks, look_every=8)):
            if number % 30 == 0:
                pinned.append((before, seen(before)))
        assert len(data_of(before.listing).chunks) > 3 or chunks == "usual"
        for snapshot, then in pinned:
            assert seen(snapshot) == then, "what somebody has stays as it was"


def test_chunks_without_a_change_are_shared() -> None:
    with tiny_chunks(600):
        world = World(seed=1)
        world.changes(800)
        snapshot = world.snapshot(Mode.ALL)
        for _ in range(100):
            changes = world.changes(1)
            (change,) = changes
            before, snapshot = snapshot, snapshot.moved(name_changes_of(NAMESPACE, changes))
            shared = set(data_of(before.listing).chunks) & set(data_of(snapshot.listing).chunks)
            # Each changed name is in one chunk, which may have been joined with a neighbour.
            most = 2 * (len(change.listed_before) + len(change.listed_after))
            assert len(data_of(before.listing).chunks) - len(shared) <= most
            assert len(shared) > 10


def test_of_the_file_too(tmp_path: Path) -> None:
    """Of changes that were written and read: names and properties come in the same order from there."""
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog, tiny_chunks(600):

        def load(mode: Mode) -> Snapshot:
            with catalog.reading() as connection:
                return load_snapshot(connection, NAMESPACE, mode, KEYS)

        world = World(seed=3)
        for _ in range(300):
            change = world.change()
            if not change.listed_before:
                write(catalog, change)
            elif change.operation is Operation.DELETE:
                catalog.delete(change.name)
            elif change.listed_before == change.listed_after:
                catalog.set_properties(change.name, change.properties_after)
            else:
                catalog.delete(change.name)
                write(catalog, change)
        for mode in Mode:
            assert seen(load(mode)) == seen(world.snapshot(mode))


def write(catalog: SqliteCatalog, change: Change) -> None:
    with catalog.changing(NAMESPACE) as (connection, making):
        connection.execute(
            "INSERT INTO topics (namespace, domain, base, listed, topic_id, properties, created)"
            " VALUES (?, ?, ?, ?, ?, ?, 0)",
            (
                making.id,
                0 if change.name.domain == PERSISTENT else 1,
                change.name.local,
                str(change.listed_after),
                uuid.uuid4().bytes,
                None,
            ),
        )
        making.leave_gap()
    catalog.set_properties(change.name, change.properties_after)


@pytest.mark.parametrize("together", [True, False])
def test_a_name_that_was_created_anew_is_the_new_topic(tmp_path: Path, together: bool) -> None:
    """Deleted and created between two looks, in one version or in two: partitions and properties are those of now."""
    name = TopicName.parse("persistent://t/n/a")
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(TopicName.parse("persistent://t/n/b"))
        catalog.create(name, partitions=3, properties={"team": "red"})

        def load() -> Snapshot:
            with catalog.reading() as connection:
                return load_snapshot(connection, name.namespace, Mode.ALL, KEYS)

        before = load()
        edits = [Edit(name, deletion(name)), Edit(name, creation(name, 2, {"team": "blue"}))]
        for each in [edits] if together else [[edit] for edit in edits]:
            catalog.edit_many(name.namespace, each)
        changes = of_type(catalog.changes(name.namespace, before.version), Changes)
        assert len({change.topic_id for change in changes}) == 2
        assert seen(before.moved(name_changes_of(name.namespace, changes))) == seen(load())
