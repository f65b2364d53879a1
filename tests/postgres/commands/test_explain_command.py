"""`broker-core postgres explain` from the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.forked_programs import forked_program
from tests.support.postgres_server import Database
from tests.support.served import to_toml


@pytest.fixture
def config(database: Database, tmp_path: Path) -> Path:
    database.sql(
        "INSERT INTO broker_core.topics (namespace, local_name, properties) "
        "SELECT 'acme/orders', 'topic-' || g, jsonb_build_object('region', 'eu') FROM generate_series(1, 30) g"
    )
    file = tmp_path / "broker-core.toml"
    table = {"dsn": database.dsn, "property_keys": ["region"]}
    file.write_text(to_toml({"plugins": {"enabled": ["postgres"], "postgres": table}}))
    return file


def explain(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [forked_program("broker-core"), "postgres", "explain", "acme/orders", "--config", str(config)]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_sql_plan_rows_and_times(config: Path) -> None:
    said = explain(config, "--pattern", "acme/orders/topic-[12].*5", "--json")
    assert said.returncode == 0, said.stderr
    report = json.loads(said.stdout)
    assert (report["plan"], report["rows"], report["topics"]) == ("range", 22, 2)
    assert report["finished_by_re2"] is True
    assert "$1" in report["sql"]
    assert report["parameters"][0] == "acme/orders"
    assert any("topics_matched" in line for line in report["explain"])
    assert report["total_ms"] > 0


def test_for_a_person(config: Path) -> None:
    said = explain(config, "--property", "region=eu", "--property", "owner=me", "--mode", "all")
    assert said.returncode == 0, said.stderr
    assert "search" in said.stdout
    assert "owner" in said.stdout
    assert "$1 = 'acme/orders'" in said.stdout
    assert "Index" in said.stdout


def test_a_database_that_is_not_there(config: Path) -> None:
    said = explain(config, "--dsn", "postgresql://postgres@127.0.0.1:1/x")
    assert said.returncode != 0
    assert "cannot be reached" in said.stderr
    assert "Traceback" not in said.stderr
