"""`broker-core postgres migrate` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker_core.cli.command_tree import run
from broker_core_postgres.schema.schema_version import migrations
from tests.postgres.schema.old_schema import make_old
from tests.support.files import file_with
from tests.support.postgres_server import Database, run_apart


def test_from_nothing_to_served(
    empty_database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = file_with(
        tmp_path / "broker.toml",
        f'[plugins.postgres]\ndsn = "{empty_database.dsn}"\nchange_log_retention = "1h"\n',
    )
    options = ["--config", str(config)]
    assert run(["postgres", "status", *options]) == 1
    assert "run `broker-core postgres migrate`" in capfd.readouterr().out
    assert run(["postgres", "migrate", "--dry-run", *options]) == 0
    assert capfd.readouterr().out == "".join(f"would apply {each}\n" for each in migrations())
    assert run(["postgres", "migrate", *options]) == 0
    said = capfd.readouterr()
    assert said.out.startswith("".join(f"applied {each}\n" for each in migrations()))
    assert "index of trigrams: yes" in said.out
    assert run(["postgres", "migrate", *options]) == 0
    assert "owned by broker_core_migrator: nothing to apply" in capfd.readouterr().out
    assert run(["postgres", "migrate", "--dry-run", *options]) == 0
    assert "is the newest: nothing to apply" in capfd.readouterr().out
    assert run(["postgres", "status", "--json", *options]) == 0
    assert json.loads(capfd.readouterr().out)["retention_seconds"] == 3600


def test_what_fails_is_one_line(database: Database, capfd: pytest.CaptureFixture[str]) -> None:
    database.sql("INSERT INTO broker_core.migrations VALUES (1000, 'future', 'x')")
    assert run(["postgres", "migrate", "--dsn", database.dsn]) != 0
    said = capfd.readouterr().err
    assert said.startswith("broker-core: The database has schema 1000,")
    assert said.count("\n") == 1
    assert run(["postgres", "migrate", "--dsn", database.server.dsn("nowhere")]) != 0
    assert 'database "nowhere" does not exist' in capfd.readouterr().err


def test_there_and_back(empty_database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    newest = migrations()[-1].number
    run_apart(lambda: make_old(empty_database, newest - 1))
    dsn = ["--dsn", empty_database.dsn]
    assert run(["postgres", "migrate", "--back", *dsn]) == 1
    assert "has no backup of an older schema" in capfd.readouterr().err
    assert run(["postgres", "migrate", *dsn]) == 0
    backup = f"broker_core_backup_{newest - 1}"
    assert (
        f"the rows of schema {newest - 1} are kept in the schema {backup}; to go back, stop"
        in capfd.readouterr().out
    )
    assert run(["postgres", "migrate", "--back", "--dry-run", *dsn]) == 0
    assert f"would go back from schema {newest} to the rows of {backup}" in capfd.readouterr().out
    assert run(["postgres", "migrate", "--back", "--no-backup", *dsn]) == 2
    capfd.readouterr()
    assert run(["postgres", "migrate", "--back", *dsn]) == 0
    said = capfd.readouterr().out
    assert said.startswith(f"schema {newest - 1}, with the rows of schema {newest - 1} of broker_core at ")
    assert f"what was written since is in broker_core_backup_{newest}" in said
    assert run(["postgres", "migrate", "--no-backup", *dsn]) == 0
    assert "kept" not in capfd.readouterr().out
