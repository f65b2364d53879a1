"""`broker-core postgres set-properties` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.cli.command_tree import run
from tests.support.files import file_with
from tests.support.postgres_server import Database


def test_one_topic_and_all_of_a_pattern(
    database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = file_with(tmp_path / "names.jsonl", '{"name": "x", "partitions": 2}\n{"name": "y"}\n')
    there = ["--dsn", database.dsn]
    assert run(["postgres", "load", "a/b", str(names), *there]) == 0
    capfd.readouterr()
    for words, said in (
        (["a/b/x", "k=v", "team=a=b"], "changed the properties of 2 of 2 names (1 topic)"),
        (["persistent://a/b/x", "k=v"], "changed the properties of 0 of 2 names (1 topic)"),
        (["a/b/x-partition-1", "--unset", "team"], "changed the properties of 2 of 2 names (1 topic)"),
        (
            ["a/b", "--pattern", ".*", "k=w", "--dry-run"],
            "would change the properties of 3 of 3 names (2 topics)",
        ),
        (
            ["a/b", "--pattern", "a/b/y", "--replace", "k=w"],
            "changed the properties of 1 of 1 name (1 topic)",
        ),
    ):
        assert run(["postgres", "set-properties", *words, *there]) == 0
        assert capfd.readouterr().out == f"{said}\n"
    for words, said in (
        (["a/b/x"], "No property is given"),
        (["a/b", "k=v"], "is a namespace"),
        (["a/b/x", "k=v", "--pattern", ".*"], "--pattern is about the topics of a namespace"),
        (["a/b/none", "k=v"], "There is no topic"),
        (["a/b/x", "k"], "expected KEY=VALUE"),
    ):
        code = run(["postgres", "set-properties", *words, *there])
        assert code == (2 if "KEY=VALUE" in said else 1)  # 2 for an argument that does not parse
        assert said in capfd.readouterr().err
