"""Migration of catalogue files of earlier releases: backup, one transaction, reading without it."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sqlite3
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from broker_core.catalog import (
    CatalogBusy,
    CatalogError,
    CatalogUnusable,
    PropertiesChange,
    SqliteCatalog,
    delete_matching,
    import_topics,
    migration_ahead,
    set_properties_of_matching,
)
from broker_core.catalog.store.catalog_file import connect, format_of
from broker_core.catalog.store.format_migration import migrate_file
from broker_core.catalog.store.schema import SCHEMA_VERSION
from broker_core.change_log import CatalogVersion, Changes
from broker_core.guards import Deletions
from broker_core.names import NamespaceName, TopicName
from broker_core.testing import serve
from tests.catalog.old_files import OLD_FILES, old_file
from tests.support.forked_programs import forked_program
from tests.support.narrowed import of_type, present

NAMESPACE = NamespaceName("public", "default")
NAMES = [
    "non-persistent://public/default/metrics",
    "persistent://public/default/orders-partition-0",
    "persistent://public/default/orders-partition-1",
    "persistent://public/default/orders-partition-2",
    "persistent://public/default/payments",
]


@pytest.fixture(params=OLD_FILES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return old_file(request.param, tmp_path / f"format-{OLD_FILES[request.param]}.sqlite")


def before_of(path: Path) -> int:
    """The format that a file of :func:`path` had."""
    return int(path.stem.removeprefix("format-"))


def backup(path: Path) -> Path:
    return path.with_name(f"{path.name}.format-{before_of(path)}.backup")


def format_in(path: Path) -> int:
    with closing(connect(path)) as connection:
        return format_of(connection)


def names(catalog: SqliteCatalog) -> list[str]:
    with catalog.topics(NAMESPACE) as (_, records):
        return sorted(name for record in records for name in record.names)


def test_it_comes_forward_with_all_that_it_had(path: Path) -> None:
    with SqliteCatalog(path, create=False) as catalog:
        before = catalog.catalog_id, catalog.version(NAMESPACE)
        done = present(catalog.migrate())
        assert (done.before, done.after, done.backup) == (before_of(path), SCHEMA_VERSION, backup(path))
        assert str(path) in done.text
        assert str(backup(path)) in done.text
        assert catalog.migrated is done
        assert catalog.migrate() is None
        assert (catalog.catalog_id, catalog.version(NAMESPACE)) == before
        assert catalog.version(NAMESPACE).stamp
        assert names(catalog) == NAMES
        changes = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 3)), Changes)
        assert [change.operation.value for change in changes] == ["update", "create", "delete"]
        record = present(catalog.topic(TopicName.parse("persistent://public/default/orders-partition-1")))
        assert record.properties == {"region": "eu"}
    assert format_in(path) == SCHEMA_VERSION
    assert format_in(backup(path)) == before_of(path)
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, backup(path).name]


def test_stamps_that_are_there_stay(tmp_path: Path) -> None:
    path = old_file("format-1-stamped", tmp_path / "c.sqlite")
    with SqliteCatalog(path, create=False) as catalog:
        before = catalog.version(NAMESPACE)
        assert before.stamp
        catalog.migrate()
        assert catalog.version(NAMESPACE).stamp == before.stamp


def test_what_came_with_format_3_is_empty_and_topics_are_found_by_their_ids(path: Path) -> None:
    payments = TopicName.parse("persistent://public/default/payments")
    with SqliteCatalog(path, create=False) as catalog:
        record = present(catalog.topic(payments))
        for _ in ("read as it is", "migrated"):
            assert catalog.topic(payments) == catalog.topic_by_id(record.topic_id) == record
            assert (record.configs, record.replication) == ({}, None)
            assert not catalog.was_deleted(record.topic_id)
            assert catalog.kafka_acls(NAMESPACE) == (0, ())
            assert catalog.kafka_users() == []
            changes = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 3)), Changes)
            assert all(not change.configs_after for change in changes)
            catalog.migrate()
        plan = "EXPLAIN QUERY PLAN SELECT base FROM topics WHERE topic_id = x'00'"
        with catalog.reading() as connection:
            assert "topics_by_id" in str(connection.execute(plan).fetchall())


def test_dry_runs_leave_it_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    with SqliteCatalog(path) as catalog:
        changed = set_properties_of_matching(
            catalog, NAMESPACE, ".*payments", PropertiesChange({"region": "asia"}), dry_run=True
        )
        deleted = delete_matching(catalog, NAMESPACE, ".*payments", Deletions(), dry_run=True)
        exact = import_topics(
            catalog, NAMESPACE, io.BytesIO(b"payments\n"), exact=Deletions(mass=True), dry_run=True
        )
        assert (changed.changed, deleted.names, exact.deleted) == (1, 1, 2)
        assert names(catalog) == NAMES
        assert catalog.migrated is None
    assert path.read_bytes() == before


def test_reading_leaves_it_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    with SqliteCatalog(path) as catalog:
        assert names(catalog) == NAMES
        assert catalog.version(NAMESPACE).number == 6
        since = CatalogVersion(catalog.catalog_id, 5)
        assert len(catalog.changes(NAMESPACE, since)) == 1  # type: ignore[arg-type]
        with catalog.state() as state:
            assert len(state.names(NAMESPACE, "persistent").names) == 4
        report = import_topics(catalog, NAMESPACE, io.BytesIO(b"new\n"), dry_run=True)
        assert report.created == 1
        assert catalog.migrated is None
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("way", ["create", "delete", "delete_all", "set_properties", "import"])
def test_the_first_that_writes_brings_it_forward(path: Path, way: str) -> None:
    payments = TopicName.parse("persistent://public/default/payments")
    with SqliteCatalog(path) as catalog:
        names(catalog)  # an idle connection that saw it as it was
        if way == "create":
            catalog.create(TopicName.parse("persistent://public/default/new"))
        elif way == "delete":
            catalog.delete(payments)
        elif way == "delete_all":
            catalog.delete_all([payments])
        elif way == "set_properties":
            catalog.set_properties(payments, {"region": "asia"})
        else:
            import_topics(catalog, NAMESPACE, io.BytesIO(b"new\n"))
        assert catalog.migrated is not None
        now = catalog.version(NAMESPACE)
        assert (now.number, bool(now.stamp)) == (7, True)
        with closing(sqlite3.connect(path)) as connection:
            (stamp,) = connection.execute(
                "SELECT stamp FROM stamps s JOIN namespaces n ON n.id = s.namespace"
                " WHERE n.name = 'public/default' AND s.version = 7"
            ).fetchone()
        assert stamp == now.stamp, "in the file itself, not in a connection"
    assert format_in(backup(path)) == before_of(path)


def test_what_another_process_migrated_is_seen_as_it_is(path: Path) -> None:
    with SqliteCatalog(path) as reader:
        names(reader)
        with SqliteCatalog(path) as writer:
            writer.create(TopicName.parse("persistent://public/default/new"))
            assert reader.version(NAMESPACE).stamp == writer.version(NAMESPACE).stamp != ""


def test_of_many_at_once_one_does_it(path: Path) -> None:
    start = threading.Barrier(8)

    def migrate(_: int) -> bool:
        start.wait()
        return migrate_file(path) is not None

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(migrate, range(8))) == [False] * 7 + [True]
    # SQLite may leave its log if two connections are closed at once.
    left = {each.name for each in path.parent.iterdir()} - {f"{path.name}-wal", f"{path.name}-shm"}
    assert left == {path.name, backup(path).name}


PROCESS = """
import sys
from pathlib import Path
from broker_core.catalog.store.format_migration import migrate_file
print(migrate_file(Path(sys.argv[1])) is not None)
"""


def test_of_many_processes_at_once_one_does_it(path: Path) -> None:
    started = [
        subprocess.Popen(
            [forked_program("python"), "-c", PROCESS, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = [process.communicate()[0].strip() for process in started]
    assert sorted(said) == ["False", "False", "True"]
    with SqliteCatalog(path) as catalog:
        assert names(catalog) == NAMES


KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
import broker_core.catalog.store.format_migration as migration

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[2] == "copying":
    import broker_core.catalog.store.backup_file as backup_file
    backup_file._named = kill
else:
    forward = migration._FORWARD[2]
    class Killing:
        def __iter__(self):
            yield from forward
            kill()
    migration._FORWARD = {**migration._FORWARD, 2: Killing()}
migration.migrate_file(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("when", ["copying", "migrating"])
def test_a_crash_leaves_it_as_it_was_and_the_next_one_does_it(path: Path, when: str) -> None:
    with SqliteCatalog(path) as catalog:
        before = catalog.catalog_id, catalog.version(NAMESPACE)
    killed = subprocess.run([forked_program("python"), "-c", KILLED, str(path), when], check=False)
    assert killed.returncode == -signal.SIGKILL
    with SqliteCatalog(path) as catalog:
        assert (catalog.catalog_id, catalog.version(NAMESPACE)) == before
        assert names(catalog) == NAMES
        assert catalog.migrated is None
        assert catalog.migrate() is not None
        assert names(catalog) == NAMES
    left = [each.name for each in path.parent.iterdir()]
    assert sorted(left) == [path.name, backup(path).name], "one copy, and nothing half done"


def test_going_back_is_moving_the_copy(path: Path) -> None:
    before = path.read_bytes()
    migrate_file(path)
    backup(path).replace(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (before_of(path),)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert len(path.read_bytes()) == len(before)


def test_a_file_of_a_newer_release_is_refused_with_the_way_back(path: Path) -> None:
    migrate_file(path)
    newer = SCHEMA_VERSION + 1
    with closing(connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {newer}")
    kept = path.with_name(f"{path.name}.format-{SCHEMA_VERSION}.backup")
    with pytest.raises(
        CatalogUnusable, match=f"has format {newer}, of a newer release.*import the topics anew"
    ):
        SqliteCatalog(path)
    kept.write_bytes(b"")
    with pytest.raises(CatalogUnusable, match=f"move the copy that it kept, {kept}, to its place"):
        SqliteCatalog(path)
    assert format_in(path) == newer


def test_without_room_it_stays_and_is_read(path: Path) -> None:
    with path.open("rb+") as file:
        file.truncate(2**43)
    with SqliteCatalog(path) as catalog:
        with pytest.raises(CatalogError, match=f"stays in format {before_of(path)}"):
            catalog.create(TopicName.parse("persistent://public/default/new"))
        assert names(catalog) == NAMES
    with closing(connect(path)) as connection:
        ahead = migration_ahead(connection, path)
    assert ahead is not None
    assert not ahead.has_room
    assert f"{SCHEMA_VERSION} at its start, which takes" in ahead.text


def test_a_writer_that_does_not_end_is_said(path: Path) -> None:
    with closing(connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(CatalogBusy, match="is of an earlier release, and is being written"):
            migrate_file(path, patience=0)
    assert format_in(path) == before_of(path)


async def test_a_server_brings_it_forward_when_it_starts(path: Path) -> None:
    async with serve(settings={"catalog": {"path": str(path)}}) as server:
        answer = await server.list("public/default", mode="all")
        assert sorted(answer.topics) == NAMES
    assert format_in(path) == SCHEMA_VERSION
    assert os.access(backup(path), os.R_OK)


async def test_two_servers_that_start_at_once_both_serve_it(path: Path) -> None:
    settings = {"catalog": {"path": str(path)}}
    async with AsyncExitStack() as stack:
        starting = [stack.enter_async_context(serve(settings=settings)) for _ in range(3)]
        for server in await asyncio.gather(*starting):
            assert sorted((await server.list("public/default", mode="all")).topics) == NAMES
