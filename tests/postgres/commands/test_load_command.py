"""`broker-core postgres load` from the command line, with the rights of a feeder."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.cli.command_tree import run
from tests.support.files import file_with
from tests.support.postgres_server import Database


@pytest.fixture
def feeder(database: Database) -> str:
    """The connection string of a user with the role of a feeder alone."""
    user = f"feeder_of_{database.name}"
    database.sql(f"CREATE ROLE {user} LOGIN IN ROLE broker_core_feeder")
    return database.dsn_of(user)


def test_a_feeder_loads_a_file(feeder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = file_with(tmp_path / "broker.toml", f'[plugins.postgres]\ndsn = "{feeder}"\n')
    names = file_with(tmp_path / "names.txt", "".join(f"topic-{number}\n" for number in range(12_000)))
    into = ["postgres", "load", "a/b", str(names), "--config", str(config)]
    assert run([*into, "--dry-run"]) == 0
    assert capfd.readouterr().out == (
        "would load 12000 names into a/b: 12000 added, 0 changed, 0 unchanged, 0 removed\n"
    )
    assert run(into) == 0
    said = capfd.readouterr()
    assert said.out.endswith("12000 added, 0 changed, 0 unchanged, 0 removed; version 1\n")
    assert not said.err, "no progress bar where there is no terminal"
    names.write_text('{"name": "orders", "partitions": 3}\n{"name": "topic-1", "properties": {"k": "v"}}\n')
    assert run([*into, "--add"]) == 0
    assert "3 added, 1 changed, 0 unchanged, 0 removed; version 2" in capfd.readouterr().out
    # A file that lost its lines must not empty a namespace.
    for some in ([], ["--max-deletions", "11998"]):
        assert run([*into, *some]) == 1
        said = capfd.readouterr()
        assert not said.out
        assert "11999 of 12003 listed names would be deleted" in said.err
        assert "nothing was written; `load --dry-run` counts them, --max-deletions 11999 or" in said.err
    assert run([*into, "--dry-run"]) == 0
    said = capfd.readouterr()
    assert "0 added, 0 changed, 4 unchanged, 11999 removed\n" in said.out
    assert "without --dry-run this is refused: 11999 of 12003 listed names" in said.err
    assert "--max-deletions 11999 or --allow-mass-deletions allows it" in said.err
    assert run([*into, "--dry-run", "--allow-mass-deletions"]) == 0
    assert not capfd.readouterr().err
    assert run([*into, "--max-deletions", "11999"]) == 0
    assert "0 added, 0 changed, 4 unchanged, 11999 removed; version 3" in capfd.readouterr().out


@pytest.mark.parametrize("add", [[], ["--add"]])
def test_a_topic_beside_its_partition_with_other_properties_is_refused(
    feeder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], add: list[str]
) -> None:
    names = tmp_path / "names.jsonl"
    lines = [f'{{"name": "t{number}", "properties": {{"region": "eu"}}}}\n' for number in range(40)]
    names.write_text("".join(lines) + '{"name": "t7-partition-3", "properties": {"region": "us"}}\n')
    into = ["postgres", "load", "a/b", str(names), "--dsn", feeder, *add]
    for dry in ([], ["--dry-run"]):
        assert run([*into, *dry]) == 1
        said = capfd.readouterr()
        assert not said.out
        assert "names.jsonl: Topic 't7' and partition 't7-partition-3' cannot both be there" in said.err
    names.write_text("".join(lines))
    assert run(into) == 0
    assert "40 added, 0 changed, 0 unchanged, 0 removed; version 1\n" in capfd.readouterr().out


def test_an_empty_file_needs_both_words_where_there_is_much(
    feeder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = file_with(tmp_path / "names.txt", "".join(f"topic-{number}\n" for number in range(11)))
    into = ["postgres", "load", "a/b", str(names), "--dsn", feeder]
    assert run(into) == 0
    names.write_text("")
    assert run([*into, "--allow-empty"]) == 1
    assert "a/b would lose all of 11 listed names: nothing was written" in capfd.readouterr().err
    assert run([*into, "--allow-empty", "--allow-mass-deletions"]) == 0
    assert "11 removed; version 2" in capfd.readouterr().out


def test_what_is_wrong_is_one_line(
    database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = file_with(tmp_path / "names.txt", "good\na//b\n")
    into = ["postgres", "load", "a/b", str(names), "--dsn", database.dsn]
    assert run(into) == 1
    assert capfd.readouterr().err.startswith(f"broker-core: {names}: line 2: ")
    names.write_text("")
    assert run(into) == 1
    assert "--allow-empty" in capfd.readouterr().err
    assert run([*into, "--allow-empty"]) == 0
    assert run(["postgres", "load", "a/b", str(tmp_path / "none"), "--dsn", database.dsn]) == 1
    assert "No such file" in capfd.readouterr().err
    database.sql(f"CREATE ROLE nobody_of_{database.name} LOGIN")
    names.write_text("x\n")
    assert run([*into[:-1], database.dsn_of(f"nobody_of_{database.name}")]) == 1
    assert "(or broker_core_feeder, to fill it)" in capfd.readouterr().err


def test_a_database_without_the_schema_is_told(
    empty_database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = file_with(tmp_path / "names.txt", "x\n")
    assert run(["postgres", "load", "a/b", str(names), "--dsn", empty_database.dsn]) == 1
    assert "broker-core postgres migrate" in capfd.readouterr().err
