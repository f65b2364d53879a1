from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker_core import Check
from broker_core_postgres.checks import check_database
from broker_core_postgres.schema.schema_version import migrations
from broker_core_postgres.settings import PostgresSettings
from tests.postgres.schema.old_schema import make_old
from tests.support.files import file_with
from tests.support.ports import free_ports
from tests.support.postgres_server import Database


async def found(**settings: Any) -> list[Check]:
    return [check async for check in check_database(PostgresSettings(**settings))]


async def test_a_database_that_is_served_from(database: Database, tmp_path: Path) -> None:
    secret = file_with(tmp_path / "password", "any")
    secret.chmod(0o600)
    ok = await found(dsn=database.dsn, password_file=secret)
    assert [(check.level, check.name) for check in ok] == [("ok", "password_file"), ("ok", "dsn")]
    assert "0 namespaces" in ok[1].text
    secret.chmod(0o644)
    assert (await found(dsn=database.dsn, password_file=secret))[0].level == "warning"


async def test_a_schema_that_is_not_there_is_not_made(empty_database: Database) -> None:
    for _ in range(2):
        (check,) = await found(dsn=empty_database.dsn)
        assert (check.level, check.name) == ("error", "schema")
        assert "run `broker-core postgres migrate`" in check.text


async def test_an_older_schema_that_a_server_would_migrate(empty_database: Database) -> None:
    await make_old(empty_database, migrations()[-2].number)
    (check,) = await found(dsn=empty_database.dsn)
    assert (check.level, check.name) == ("warning", "schema")
    assert "or start a server: it migrates the database by itself" in check.text
    (check,) = await found(dsn=empty_database.dsn, auto_migrate=False)
    assert (check.level, check.name) == ("error", "schema")
    empty_database.sql("DROP ROLE IF EXISTS looks; CREATE ROLE looks LOGIN IN ROLE broker_core_reader")
    try:
        (check,) = await found(dsn=empty_database.dsn_of("looks"))
        assert (check.level, check.name) == ("error", "schema"), "its user may not"
    finally:
        empty_database.sql("DROP ROLE looks")


async def test_what_a_password_is_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (check,) = await found(dsn="postgresql://h/db", password_file=tmp_path / "absent")
    assert check == Check.error("password_file", f"there is no file {tmp_path / 'absent'}")
    monkeypatch.delenv("TOPICS_PASSWORD", raising=False)
    (check,) = await found(dsn="postgresql://h/db", password_env="TOPICS_PASSWORD")
    assert (check.level, check.name) == ("error", "password_env")
    (check,) = await found(service="s", service_file=tmp_path / "absent")
    assert (check.level, check.name) == ("error", "service_file")


async def test_who_does_not_answer(database: Database) -> None:
    (port,) = free_ports(1)
    away = f"postgresql://127.0.0.1:{port}/db"
    (check,) = await found(dsn=away)
    assert (check.level, check.name) == ("error", "dsn")
    assert f"127.0.0.1:{port}" in check.text
    several = await found(dsn=database.dsn, listen_dsn=away, replicas=(database.dsn, away))
    assert [(check.level, check.name) for check in several] == [
        ("ok", "dsn"),
        ("error", "listen_dsn"),
        ("ok", "replicas.1"),
        ("warning", "replicas.2"),
    ]


async def test_a_string_that_cannot_be_read_is_not_quoted() -> None:
    (check,) = await found(dsn="postgresql://u:hunter2" + "@h:port/db")
    assert check.level == "error"
    assert "hunter2" not in check.text


async def test_a_relation_of_ones_own(database: Database) -> None:
    (check,) = await found(dsn=database.dsn, relation="broker_core.topics")
    assert (check.level, check.name) == ("ok", "dsn")
    (check,) = await found(dsn=database.dsn, relation="no.such")
    assert (check.level, check.name) == ("error", "schema")
