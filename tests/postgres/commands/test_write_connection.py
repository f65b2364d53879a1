from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from broker_core.cli.command_tree import run
from broker_core_postgres.commands.write_connection import writing_failure
from broker_core_postgres.schema.schema_version import migrations
from tests.postgres.schema.old_schema import make_old
from tests.support.catalogue_topics import create_topics
from tests.support.files import file_with
from tests.support.postgres_server import Database, run_apart


def test_a_refusal_is_told_in_words_for_writers() -> None:
    error = asyncpg.InsufficientPrivilegeError("permission denied for table topics")
    assert "broker_core_feeder" in writing_failure(error)
    assert "permission denied for table topics" in writing_failure(error)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["load", "a/b", "FILE"], 1),
        (["sync", "--catalog", "CATALOG"], 1),
        (["verify", "--catalog", "CATALOG"], 2),
        (["set-properties", "a/b/x", "k=v"], 1),
    ],
    ids=["load", "sync", "verify", "set-properties"],
)
def test_a_relation_of_ones_own_is_not_filled(
    command: list[str], code: int, database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Listings would not read what the command writes, whether the schema fits or not."""
    config = file_with(
        tmp_path / "broker.toml", f'[plugins.postgres]\ndsn = "{database.dsn}"\nrelation = "mine"\n'
    )
    file, catalog = tmp_path / "names.txt", tmp_path / "catalog.sqlite"
    file.write_text("x\n")
    create_topics(catalog, "persistent://a/b/x")
    words = [{"FILE": str(file), "CATALOG": str(catalog)}.get(word, word) for word in command]
    assert run(["postgres", *words, "--config", str(config)]) == code
    said = capfd.readouterr().err
    assert 'relation = "mine"' in said
    assert "does not concern it" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "dry"),
    [
        (["load", "a/b", "FILE"], ["--dry-run"]),
        (["sync", "--catalog", "CATALOG"], ["--dry-run"]),
        (["verify", "--catalog", "CATALOG", "--fix"], []),
        (["set-properties", "acme/orders/o-1", "k=v"], ["--dry-run"]),
    ],
    ids=["load", "sync", "verify", "set-properties"],
)
def test_who_writes_migrates_an_older_schema(
    command: list[str],
    dry: list[str],
    empty_database: Database,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    older = migrations()[-2].number
    run_apart(lambda: make_old(empty_database, older))
    config = file_with(tmp_path / "broker.toml", f'[plugins.postgres]\ndsn = "{empty_database.dsn}"\n')
    file, catalog = tmp_path / "names.txt", tmp_path / "catalog.sqlite"
    file.write_text("x\n")
    create_topics(catalog, "persistent://a/b/x")
    words = [{"FILE": str(file), "CATALOG": str(catalog)}.get(word, word) for word in command]
    if command[0] in {"sync", "verify"}:
        words.append("--allow-mass-deletions")
    words = ["postgres", *words, "--config", str(config)]
    needed = f"The database has schema {older}, and schema {older + 1} is needed"
    looks = [word for word in words if word not in {"--fix", "--allow-mass-deletions"}] + dry
    assert run(looks) > 0, "who only looks changes nothing"
    assert needed in capfd.readouterr().err
    config.write_text(config.read_text() + "auto_migrate = false\n")
    assert run(words) > 0
    assert f"{needed}: run `broker-core postgres migrate` (auto_migrate is off)" in capfd.readouterr().err
    config.write_text(config.read_text().replace("auto_migrate = false", "auto_migrate = true"))
    assert run(words) == 0
    said = capfd.readouterr().err
    assert f"migrated the database to schema {older + 1}: the rows of schema {older} are kept" in said
    assert "run `broker-core postgres migrate --back` with this version" in said
    assert run(["postgres", "status", "--config", str(config)]) == 0
    shown = capfd.readouterr().out
    assert f"schema         {older + 1} of {older + 1}" in shown
    assert f"backup         broker_core_backup_{older}: schema {older} of broker_core at " in shown
