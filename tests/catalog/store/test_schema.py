from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from broker_core.catalog.store.schema import APPLICATION_ID, SCHEMA_VERSION, is_blank, make_tables, pragma


def test_tables_are_made_once_and_the_file_is_marked(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "c.sqlite", isolation_level=None)) as connection:
        assert is_blank(connection)
        make_tables(connection)
        assert not is_blank(connection)
        assert (pragma(connection, "application_id"), pragma(connection, "user_version")) == (
            APPLICATION_ID,
            SCHEMA_VERSION,
        )
        made = connection.execute("SELECT * FROM meta").fetchall()
        make_tables(connection)  # of two processes that do so at once, one finds them made
        assert connection.execute("SELECT * FROM meta").fetchall() == made


def test_the_write_ahead_log_comes_when_another_process_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.sqlite"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(time, "sleep", lambda _: other.execute("ROLLBACK"))
        make_tables(connection)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
