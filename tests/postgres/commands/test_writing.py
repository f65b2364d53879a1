from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.cli.app import run
from broker_core.names import TopicName
from broker_core_postgres.commands.writing import run_to_end, told
from broker_core_postgres.filling_failed import FillingFailed
from tests.support.postgres_server import Database


def test_a_refusal_is_told_in_words_for_writers() -> None:
    error = asyncpg.InsufficientPrivilegeError("permission denied for table topics")
    assert "broker_core_feeder" in told(error)
    assert "permission denied for table topics" in told(error)


def test_an_error_of_a_group_is_raised_as_it_is() -> None:
    async def failing() -> None:
        raise ExceptionGroup("several", [FillingFailed("why")])

    with pytest.raises(FillingFailed, match="why"):
        run_to_end(failing)


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
    """What it would write nobody lists, migrated or not."""
    config = tmp_path / "broker.toml"
    config.write_text(f'[plugins.postgres]\ndsn = "{database.dsn}"\nrelation = "mine"\n')
    file, catalog = tmp_path / "names.txt", tmp_path / "catalog.sqlite"
    file.write_text("x\n")
    with SqliteCatalog(catalog) as made:
        made.create(TopicName.parse("persistent://a/b/x"))
    words = [{"FILE": str(file), "CATALOG": str(catalog)}.get(word, word) for word in command]
    assert run(["postgres", *words, "--config", str(config)]) == code
    said = capfd.readouterr().err
    assert 'relation = "mine"' in said
    assert "does not concern it" in said
    assert said.count("\n") == 1
