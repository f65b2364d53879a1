"""`broker-core postgres status` by the command line."""

from __future__ import annotations

import json

import pytest

from broker_core.cli.app import run
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
