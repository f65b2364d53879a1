"""`broker-core postgres verify` from the command line, with a catalogue; tests/interop does it with a real cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker_core.cli.command_tree import run
from tests.support.catalogue_topics import create_topics
from tests.support.postgres_server import Database


def test_differences_are_named_fixed_and_gone(
    database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "catalog.sqlite"
    create_topics(path, "persistent://a/b/x", "persistent://a/b/y")
    common = ["--catalog", str(path), "--dsn", database.dsn]
    assert run(["postgres", "sync", *common]) == 0
    assert run(["postgres", "verify", *common]) == 0
    assert capfd.readouterr().out.endswith(
        "compared 2 names of 1 namespace: 0 topics missing, 0 extra, 0 different\n"
    )
    database.sql("DELETE FROM broker_core.topics WHERE local_name = 'x'")
    database.sql("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'z')")
    assert run(["postgres", "verify", *common]) == 1
    assert capfd.readouterr().out.splitlines()[:2] == [
        "missing   persistent://a/b/x",
        "extra     persistent://a/b/z",
    ]
    assert run(["postgres", "verify", "--json", *common]) == 1
    printed = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(each["kind"], each["topic"]) for each in printed] == [
        ("missing", "persistent://a/b/x"),
        ("extra", "persistent://a/b/z"),
    ]
    assert run(["postgres", "verify", "--fix", "--max-deletions", "0", *common]) == 1
    assert "--allow-mass-deletions" in capfd.readouterr().err
    assert run(["postgres", "verify", "--fix", *common]) == 0
    assert "fixed" in capfd.readouterr().out
    assert run(["postgres", "verify", *common]) == 0


def test_not_knowing_is_a_code_of_its_own(
    database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["postgres", "verify", "--catalog", str(tmp_path / "none"), "--dsn", database.dsn]) == 2
    assert capfd.readouterr().err.startswith("broker-core: There is no catalogue")
