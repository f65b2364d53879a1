from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from broker_core.catalog.catalog_errors import CatalogBusy, CatalogError, CatalogUnusable
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.names import NamespaceName, TopicName
from tests.support.catalogue_topics import create_topics

NAMESPACE = NamespaceName("public", "default")


def topic(local: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, local)


def test_a_writer_that_does_not_end_is_an_error_in_time(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", busy_timeout=0.05) as catalog:
        other = catalog.connect()
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CatalogBusy):
            catalog.create(topic("a"))
        assert catalog.version(NAMESPACE).number == 0, "reading goes on"
        other.execute("ROLLBACK")
        other.close()
        catalog.create(topic("a"))


def test_a_reading_sees_one_state(catalog: SqliteCatalog) -> None:
    catalog.create(topic("a"))
    with catalog.reading() as connection:
        before = connection.execute("SELECT count(*) FROM topics").fetchone()
        catalog.create(topic("b"))
        assert connection.execute("SELECT count(*) FROM topics").fetchone() == before


def test_an_error_within_a_change_undoes_it(catalog: SqliteCatalog) -> None:
    with pytest.raises(KeyError), catalog.changing(NAMESPACE) as (connection, change):
        connection.execute(
            "INSERT INTO topics VALUES (?, 0, 'x', '*', x'00', NULL, 0, NULL, NULL)", (change.id,)
        )
        change.logged(1)
        raise KeyError
    assert catalog.topic(topic("x")) is None
    assert catalog.version(NAMESPACE).number == 0


def test_another_file_in_its_place_is_opened_anew(tmp_path: Path) -> None:
    create_topics(tmp_path / "new.sqlite", topic("theirs"))
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(topic("ours"))
        old = catalog.catalog_id
        (tmp_path / "new.sqlite").rename(tmp_path / "c.sqlite")
        for leftover in tmp_path.glob("c.sqlite-*"):
            leftover.unlink()
        assert catalog.catalog_id != old
        assert catalog.topic(topic("ours")) is None
        assert catalog.topic(topic("theirs")) is not None


def test_a_damaged_page_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with SqliteCatalog(path) as catalog:
        for number in range(300):
            catalog.create(topic(f"{number:0200d}"))
        connection = catalog.connect()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(8192 * 6)  # behind the schema
        file.write(b"\xff" * (size - 8192 * 6))
    with SqliteCatalog(path) as catalog, pytest.raises(CatalogUnusable, match=r"c\.sqlite is damaged"):
        for number in range(300):
            catalog.topic(topic(f"{number:0200d}"))


def test_a_closed_catalogue_says_so(tmp_path: Path) -> None:
    catalog = SqliteCatalog(tmp_path / "c.sqlite")
    catalog.version(NAMESPACE)
    catalog.close()
    catalog.close()
    with pytest.raises(CatalogError, match="closed"):
        catalog.version(NAMESPACE)


def test_a_connection_that_failed_is_not_used_again(catalog: SqliteCatalog) -> None:
    with pytest.raises(CatalogError, match="no such table"), catalog.reading() as connection:
        connection.execute("SELECT * FROM nowhere")
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")
    assert catalog.version(NAMESPACE).number == 0
