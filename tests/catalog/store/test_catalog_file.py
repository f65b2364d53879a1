from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.catalog.catalog_errors import CatalogUnusable
from broker_core.catalog.store.catalog_file import connect, open_catalog_file
from broker_core.catalog.store.schema import APPLICATION_ID, SCHEMA_VERSION
from broker_core.names import TopicName
from tests.support.files import file_with


def test_a_new_file_has_an_id_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    first = open_catalog_file(tmp_path / "one.sqlite", create=True)
    assert open_catalog_file(tmp_path / "one.sqlite", create=False) == first
    assert open_catalog_file(tmp_path / "other.sqlite", create=True) != first
    connection = connect(tmp_path / "one.sqlite")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA page_size").fetchone() == (8192,)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    connection.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
@pytest.mark.parametrize("mode", [None, 0o640, 0o660])
def test_a_new_file_and_what_sqlite_makes_beside_it_have_its_mode(
    tmp_path: Path, umask: int, mode: int | None
) -> None:
    path = tmp_path / "c.sqlite"
    before = os.umask(umask)
    try:
        with SqliteCatalog(path) if mode is None else SqliteCatalog(path, mode=mode) as catalog:
            catalog.create(TopicName.parse("persistent://a/b/c"))
            made = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert made == dict.fromkeys(("c.sqlite", "c.sqlite-wal", "c.sqlite-shm"), mode or 0o600)


def test_a_file_that_is_there_keeps_its_mode_and_a_link_is_followed(tmp_path: Path) -> None:
    path, link = tmp_path / "real.sqlite", tmp_path / "link.sqlite"
    link.symlink_to(path)
    open_catalog_file(link, create=True)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    open_catalog_file(link, create=True)
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_file_name_may_hold_what_a_uri_would_split(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c %41.sqlite"
    open_catalog_file(path, create=True)
    assert path.exists()


def test_an_empty_file_becomes_a_catalogue_where_one_may_be_made(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.touch()
    with pytest.raises(CatalogUnusable, match="is empty"):
        open_catalog_file(path, create=False)
    assert open_catalog_file(path, create=True)


def test_many_that_make_it_at_once_make_one(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    start = threading.Barrier(8)
    ids: list[str] = []

    def make() -> None:
        start.wait()
        ids.append(open_catalog_file(path, create=True))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1


def test_where_there_is_none_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(CatalogUnusable, match=r"There is no catalogue .*c\.sqlite"):
        open_catalog_file(tmp_path / "c.sqlite", create=False)
    with pytest.raises(CatalogUnusable, match="there is no folder"):
        open_catalog_file(tmp_path / "no" / "c.sqlite", create=True)
    with pytest.raises(CatalogUnusable, match="it is a folder"):
        open_catalog_file(tmp_path, create=True)


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = file_with(tmp_path / "names.txt", b"orders\n" * 1000)
    with pytest.raises(CatalogUnusable, match=r"names\.txt is not a catalogue: it is no SQLite database"):
        open_catalog_file(text, create=True)
    assert text.read_bytes() == b"orders\n" * 1000

    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    with pytest.raises(CatalogUnusable, match="database of something else"):
        open_catalog_file(other, create=True)
    assert other.read_bytes() == before


@pytest.mark.parametrize(
    ("version", "said"), [(SCHEMA_VERSION + 1, "of a newer release"), (0, "no release made a format 0")]
)
def test_a_format_that_nobody_knows_is_refused(tmp_path: Path, version: int, said: str) -> None:
    path = tmp_path / "c.sqlite"
    open_catalog_file(path, create=True)
    connection = connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()

    with pytest.raises(CatalogUnusable, match=said):
        open_catalog_file(path, create=True)


def test_a_database_that_only_claims_to_be_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.commit()
    connection.close()
    with pytest.raises(CatalogUnusable, match="lacks"):
        open_catalog_file(path, create=False)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    open_catalog_file(path, create=True)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(CatalogUnusable, match="damaged"):
        open_catalog_file(path, create=False)
