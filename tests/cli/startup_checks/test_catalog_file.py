from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.cli.startup_checks.catalog_file import catalog_checks
from broker_core.names import TopicName
from broker_core.settings import Settings
from tests.catalog.old_files import old_file
from tests.cli.startup_checks.findings import levels, settings, text
from tests.support.catalogue_topics import create_topics
from tests.support.files import file_with


def catalog(path: Path, *keys: str) -> Settings:
    return settings(catalog={"path": path, "property_keys": keys})


def test_a_catalogue_is_looked_at_and_nothing_is_made(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    assert levels(catalog_checks(catalog(path))) == {"catalog.path": "warning"}
    assert levels(catalog_checks(catalog(tmp_path / "absent" / "c.sqlite"))) == {"catalog.path": "error"}
    assert list(tmp_path.iterdir()) == []
    with SqliteCatalog(path) as opened:
        opened.create(TopicName.parse("persistent://a/b/x"), properties={"region": "eu"})
        # While somebody has it open, and after.
        assert text(list(catalog_checks(catalog(path))), "catalog.path") == f"{path}: 1 topic"
    before = (sorted(tmp_path.iterdir()), path.read_bytes(), path.stat().st_mtime_ns)
    found = list(catalog_checks(catalog(path, "region", "team")))
    assert text(found, "catalog.path") == f"{path}: 1 topic"
    assert levels(found) == {"catalog.path": "ok", "catalog.property_keys": "warning"}
    assert "'team'" in text(found, "catalog.property_keys")
    assert (sorted(tmp_path.iterdir()), path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_file_that_others_may_read_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "c and d.sqlite"
    backup = tmp_path / "c and d.sqlite.format-2.backup"
    with SqliteCatalog(path) as opened:
        opened.create(TopicName.parse("persistent://a/b/x"))  # so that there is a log
        backup.touch(0o600)
        assert "catalog.mode" not in levels(catalog_checks(catalog(path)))
        for file in tmp_path.iterdir():
            file.chmod(0o644)
        found = list(catalog_checks(catalog(path)))
        assert levels(found)["catalog.mode"] == "warning"
        chmod = text(found, "catalog.mode").split("`")[1]
        assert shlex.split(chmod) == [
            "chmod",
            "0600",
            *map(str, (path, f"{path}-wal", f"{path}-shm", backup)),
        ]
        meant = settings(catalog={"path": path, "mode": "0644"})
        assert "catalog.mode" not in levels(catalog_checks(meant))
        subprocess.run(chmod, shell=True, check=True)  # as it is told
        assert "catalog.mode" not in levels(catalog_checks(catalog(path)))


def test_where_no_topic_has_a_property_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with SqliteCatalog(path) as opened:
        assert levels(catalog_checks(catalog(path, "team"))) == {"catalog.path": "ok"}, "nothing yet"
        opened.create(TopicName.parse("persistent://a/b/x"))
    found = list(catalog_checks(catalog(path, "team")))
    assert text(found, "catalog.property_keys").endswith("gets nothing; no topic has any property")


def test_a_catalogue_that_can_only_be_read_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.sqlite"
    create_topics(path, "persistent://a/b/x")
    access = os.access
    monkeypatch.setattr(  # root may do anything
        os, "access", lambda place, mode: access(place, mode) and (Path(place) != path or not mode & os.W_OK)
    )
    (found,) = catalog_checks(catalog(path))
    assert found.level == "warning"
    assert "1 topic, listed" in found.text


def test_a_folder_of_snapshots_that_others_can_write_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    create_topics(path, "persistent://a/b/x")
    folder = tmp_path / "c.sqlite.snapshots"
    folder.mkdir(0o700)
    assert levels(catalog_checks(catalog(path))) == {"catalog.path": "ok"}
    folder.chmod(0o777)
    found = list(catalog_checks(catalog(path)))
    assert levels(found) == {"catalog.path": "ok", "catalog.snapshots": "warning"}
    assert "all may write" in text(found, "catalog.snapshots")
    off = settings(catalog={"path": path, "snapshots": "off"})
    assert levels(catalog_checks(off)) == {"catalog.path": "ok"}


def test_a_catalogue_of_a_former_release_is_told_of_ahead(tmp_path: Path) -> None:
    path = old_file("format-1-unstamped", tmp_path / "c.sqlite")
    path.chmod(0o600)
    found = list(catalog_checks(catalog(path)))
    assert levels(found) == {"catalog.path": "ok", "catalog.format": "warning"}
    assert "from format 1 to 3 at its start, and keeps a copy of it" in text(found, "catalog.format")
    with path.open("rb+") as file:
        file.truncate(2**43)
    found = list(catalog_checks(catalog(path)))
    assert levels(found) == {"catalog.path": "ok", "catalog.format": "error"}


@pytest.mark.parametrize("content", [b"no database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_catalogue(tmp_path: Path, content: bytes) -> None:
    path = file_with(tmp_path / "c.sqlite", content)
    assert levels(catalog_checks(catalog(path))) == {"catalog.path": "error"}
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may do anything
    (tmp_path / "c.sqlite").touch()
    found = list(catalog_checks(catalog(tmp_path / "c.sqlite")))
    assert levels(found) == {"catalog.path": "error", "catalog.snapshots": "warning"}
