"""`broker-core postgres sync` from the command line, with a catalogue; tests/interop does it with a real cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.cli.command_tree import run
from broker_core.names import TopicName
from broker_core_postgres.commands.sync_command import EXIT_INCOMPLETE
from tests.support.ports import free_port
from tests.support.postgres_server import Database


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.sqlite"
    with SqliteCatalog(path) as made:
        made.create(TopicName.parse("persistent://a/b/x"), partitions=2, properties={"k": "v"})
        made.create(TopicName.parse("persistent://c/d/y"))
    return path


def test_a_catalogue_is_mirrored_by_a_feeder(
    database: Database, catalog: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    database.sql(f"CREATE ROLE syncer_of_{database.name} LOGIN IN ROLE broker_core_feeder")
    sync = [
        "postgres",
        "sync",
        "--catalog",
        str(catalog),
        "--dsn",
        database.dsn_of(f"syncer_of_{database.name}"),
    ]
    assert run([*sync, "--dry-run"]) == 0
    assert capfd.readouterr().out.splitlines() == [
        "missing   persistent://a/b/x: persistent://a/b/x-partition-0, persistent://a/b/x-partition-1",
        "missing   persistent://c/d/y",
        "would mirror 3 names of 2 namespaces: 3 added, 0 changed, 0 removed",
    ]
    assert run(sync) == 0
    assert capfd.readouterr().out == (
        "mirrored 3 names of 2 namespaces: 3 added, 0 changed, 0 removed; 2 namespaces written\n"
    )
    with SqliteCatalog(catalog) as changed:
        changed.set_properties(TopicName.parse("persistent://c/d/y"), {"k": "\0"})
        changed.delete(TopicName.parse("persistent://a/b/x"))
    assert run([*sync, "--json"]) == EXIT_INCOMPLETE
    said = capfd.readouterr()
    report = json.loads(said.out)
    assert (report["removed"], report["written"], list(report["unread"])) == (
        2,
        {"a/b": 2},
        ["persistent://c/d/y"],
    )
    assert "the properties of persistent://c/d/y were left as they are" in said.err


def test_what_is_wrong_is_one_line(
    database: Database, catalog: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    there = ["--dsn", database.dsn]
    nobody = f"http://127.0.0.1:{free_port()}"
    for words, said in (
        ([], "--admin-url or --catalog"),
        (["--admin-url", nobody, "--catalog", str(catalog)], "--admin-url or --catalog"),
        (["--catalog", str(tmp_path / "none")], "There is no catalogue"),
        (["--admin-url", nobody, "--tries", "1"], f"GET {nobody}/admin/v2/tenants"),
        (["--admin-url", nobody, "--timeout", "soon"], "is not a duration"),
        (["--catalog", str(catalog), "--namespace", "a"], "is no namespace"),
    ):
        assert run(["postgres", "sync", *words, *there]) == 1
        assert said in capfd.readouterr().err
