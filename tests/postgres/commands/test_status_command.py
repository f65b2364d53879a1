"""`broker-core postgres status` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker_core.cli.command_tree import run
from tests.support.files import file_with
from tests.support.postgres_server import Database


def test_a_table_or_json(database: Database, capfd: pytest.CaptureFixture[str]) -> None:
    database.sql(
        "INSERT INTO broker_core.topics (namespace, local_name) SELECT 'a/b', i::text FROM generate_series(1, 2000) i"
    )
    assert run(["postgres", "status", "--dsn", database.dsn]) == 0
    said = capfd.readouterr().out
    assert f"database       {database.name}, as postgres" in said
    assert "trigrams       an index" in said
    assert "change log     7 days" in said
    (line,) = (line for line in said.splitlines() if line.lstrip().startswith("a/b"))
    assert line.split()[1:5] == ["1", "2,000", "1", "2,000"]
    assert run(["postgres", "status", "--dsn", database.dsn, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["namespaces"][0]["topics"] == 2000
    assert found["problem"] is None


def test_a_server_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["postgres", "status", "--dsn", "postgresql://postgres@127.0.0.1:1/x"]) != 0
    assert "cannot connect to PostgreSQL" in capfd.readouterr().err


def test_a_relation_of_ones_own_needs_no_schema(
    empty_database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = file_with(
        tmp_path / "broker.toml", f'[plugins.postgres]\ndsn = "{empty_database.dsn}"\nrelation = "mine"\n'
    )
    status = ["postgres", "status", "--config", str(config)]
    assert run(status) == 1
    assert "problem        relation: there is no table or view mine" in capfd.readouterr().out
    empty_database.sql(
        'CREATE TABLE mine (namespace text COLLATE "C", domain text COLLATE "C", local_name text COLLATE "C",'
        ' matched text COLLATE "C")'
    )
    assert run(status) == 0
    said = capfd.readouterr().out
    assert "relation       mine: listings read it" in said
    assert "do not concern it" in said
    assert "migrate" not in said
    assert run([*status, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["relation"], found["problem"]) == ("mine", None)
