from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator

import pytest

from broker_core.catalog.catalog_errors import CatalogError
from broker_core.catalog.store.file_watch import FileWatch
from broker_core.catalog.store.schema import pragma
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from tests.catalog.listers import NAMESPACE, put_another, topic
from tests.support.catalogue_topics import create_topics
from tests.support.narrowed import present


@pytest.fixture
def watch(catalog: SqliteCatalog) -> Iterator[FileWatch]:
    watch = FileWatch(catalog)
    yield watch
    watch.close()


def test_at_the_start_it_waits_for_who_has_the_file_alone(catalog: SqliteCatalog) -> None:
    """As another server has it that starts at the same time, and migrates it."""
    other = sqlite3.connect(catalog.path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("CREATE TABLE theirs (x)")
    free = threading.Timer(0.3, other.close)
    free.start()
    watch = FileWatch(catalog)
    free.join()
    try:
        assert watch.look()
        assert watch.catalog_id == catalog.catalog_id
    finally:
        watch.close()


def test_looks_for_questions_that_came_together_are_one(catalog: SqliteCatalog, watch: FileWatch) -> None:
    assert watch.look(1)
    before = watch.state
    catalog.create(topic("new"))
    assert watch.look(1)
    assert watch.state == before
    assert watch.look(2)
    assert watch.state == before + 1
    catalog.create(topic("newer"))
    assert watch.look()
    assert watch.look()  # 0 is no number: each of these looks
    assert watch.state == before + 2
    assert watch.look(3)
    put_another(catalog, "other")
    assert watch.look(3)
    assert not watch.look(4)
    assert not watch.look(4)


def number(watch: FileWatch) -> int:
    version = present(watch.version(NAMESPACE))
    return version.number


def test_only_a_commit_is_another_state(catalog: SqliteCatalog, watch: FileWatch) -> None:
    assert watch.look()
    state = watch.state
    assert watch.look()
    assert watch.state == state
    assert number(watch) == 0

    catalog.create(topic("x"))
    assert watch.look()
    assert watch.state == state + 1
    assert number(watch) == 1
    create_topics(catalog.path, topic("y"))
    assert watch.look()
    assert watch.state == state + 2
    assert number(watch) == 2


def test_a_writer_in_the_midst_is_not_waited_for(catalog: SqliteCatalog, watch: FileWatch) -> None:
    catalog.create(topic("x"))
    connection = catalog.connect()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM topics")
    assert watch.look()
    assert number(watch) == 1
    assert watch.read_row(lambda reading: pragma(reading, "busy_timeout")) == 0
    connection.close()


def test_another_file_is_noticed_and_opened(catalog: SqliteCatalog, watch: FileWatch) -> None:
    catalog.create(topic("x"))
    catalog.create(topic("y"))
    assert watch.look()
    state = watch.state
    assert not watch.replaced

    put_another(catalog, "z")
    assert watch.replaced
    assert not watch.look()
    watch.reopen()
    assert not watch.replaced
    assert watch.look()
    assert watch.state > state
    assert number(watch) == 1


def test_a_file_that_went_cannot_be_looked_at(catalog: SqliteCatalog, watch: FileWatch) -> None:
    catalog.path.unlink()
    assert not watch.look()
    assert watch.replaced
    with pytest.raises(CatalogError):
        watch.reopen()
    assert not watch.look()


def test_a_closed_watch_sees_nothing(catalog: SqliteCatalog) -> None:
    watch = FileWatch(catalog)
    watch.close()
    watch.close()
    assert not watch.look()
    assert watch.version(NAMESPACE) is None


def test_a_query_of_a_few_rows_is_answered_at_once_or_not_at_all(
    catalog: SqliteCatalog, watch: FileWatch
) -> None:
    catalog.create(topic("a"))
    query = "SELECT count(*) FROM topics"
    assert watch.read(lambda connection: connection.execute(query).fetchone()) == (1,)
    catalog.create(topic("b"))
    assert watch.read(lambda connection: connection.execute(query).fetchone()) == (2,)
    assert watch.read(lambda connection: connection.execute("SELECT nothing FROM topics").fetchone()) is None
    put_another(catalog, "c")
    assert watch.read(lambda connection: connection.execute(query).fetchone()) is None
