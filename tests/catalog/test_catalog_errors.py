from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from broker_core.catalog.catalog_errors import (
    CatalogBusy,
    CatalogError,
    CatalogFull,
    CatalogReadOnly,
    CatalogUnusable,
    ImportRefused,
    sqlite_errors,
)
from broker_core.errors import BrokerCoreError

PATH = Path("topics.sqlite")


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("SQLITE_BUSY", CatalogBusy, "another process"),
        ("SQLITE_BUSY_RECOVERY", CatalogBusy, "another process"),
        ("SQLITE_NOTADB", CatalogUnusable, "no SQLite database"),
        ("SQLITE_CORRUPT", CatalogUnusable, "damaged"),
        ("SQLITE_CANTOPEN", CatalogUnusable, "cannot be opened"),
        ("SQLITE_READONLY", CatalogReadOnly, "cannot be written"),
        ("SQLITE_FULL", CatalogFull, "disk is full"),
        ("SQLITE_IOERR", CatalogError, "failed"),
    ],
)
def test_what_sqlite_raises_names_the_file_and_what_to_do(
    name: str, kind: type[CatalogError], said: str
) -> None:
    error = sqlite3.OperationalError("its own words")
    error.sqlite_errorname = name

    with pytest.raises(kind) as raised, sqlite_errors(PATH):
        raise error

    assert "topics.sqlite" in str(raised.value)
    assert said in str(raised.value)
    assert type(raised.value) is kind


def test_an_error_without_a_code_is_told_too() -> None:
    with pytest.raises(CatalogError, match=r"topics\.sqlite failed: closed"), sqlite_errors(PATH):
        raise sqlite3.ProgrammingError("closed")


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), sqlite_errors(PATH):
        raise KeyError("x")


def test_a_refused_import_has_its_line() -> None:
    error = ImportRefused(7, "it is empty")
    assert (error.line, error.reason, str(error)) == (7, "it is empty", "line 7: it is empty")
    assert isinstance(error, BrokerCoreError)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a read-only mount, which a test cannot make: what SQLite says there is raised."""
    path = tmp_path / "topics.sqlite"
    path.touch()
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorname = "SQLITE_CANTOPEN"
    for writable, says in ((False, f"the folder {tmp_path} cannot be written"), (True, "unable to open")):
        monkeypatch.setattr(os, "access", lambda *_, writable=writable: writable)
        with pytest.raises(CatalogUnusable, match=says), sqlite_errors(path):
            raise error
