"""The last success of a mirror: recorded by complete runs alone, and shown while the database is down too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broker_core.cli.command_tree import run
from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import Deletions, MassDeletion
from broker_core_postgres.fill.sync.mirror import Mirror
from broker_core_postgres.fill.sync.scope import EVERYTHING, Scope
from broker_core_postgres.fill.sync.verification import verify
from broker_core_postgres.mirror_success import read_successes, record_success
from tests.postgres.fault_setup import serving
from tests.postgres.fill.sync.mirror_setup import source_of
from tests.support.admin_server import AdminServer, Fault
from tests.support.catalogue_topics import create_topics
from tests.support.eventually import eventually
from tests.support.narrowed import present
from tests.support.postgres_server import Database, PostgresServer

METRIC = "mirror_last_success_timestamp_seconds"


async def sync(connection: Any, server: AdminServer, scope: Scope = EVERYTHING) -> None:
    async with source_of(server) as source, Mirror.read(connection, source, scope) as mirror:
        await mirror.write(Deletions())


async def noted(connection: Any) -> dict[str, tuple[str, float]]:
    return {
        each.scope: (each.source, each.succeeded.timestamp()) for each in await read_successes(connection)
    }


async def test_a_run_that_mirrored_all_is_noted_though_nothing_changed(connection: Any) -> None:
    async with AdminServer() as server:
        server.namespace("a/b", ["x"])
        assert await noted(connection) == {}
        await sync(connection, server)
        first = await noted(connection)
        assert first.keys() == {"everything"}
        assert first["everything"][0] == f"{server.url}/admin/v2"
        await sync(connection, server)
        assert (await noted(connection))["everything"][1] > first["everything"][1]


async def test_a_run_that_left_something_is_not(connection: Any) -> None:
    async with AdminServer() as server:
        server.namespace("a/b", ["x"])
        server.namespace("a/c", ["y"])
        server.fail("persistent/a/c/y/properties", Fault(412), always=True)  # the exit code is 3
        await sync(connection, server)
        server.fail("persistent/a/c", Fault(403), always=True)
        await sync(connection, server)
        assert await noted(connection) == {}
        await sync(connection, server, Scope.parse([], ["a/b"]))
        assert (await noted(connection)).keys() == {"--namespace a/b"}
        server.fail("tenants", Fault(403), always=True)
        with pytest.raises(BrokerCoreError):
            await sync(connection, server, Scope.parse([], ["a/b"]))


async def test_neither_is_one_that_was_refused_nor_one_that_only_looked(connection: Any) -> None:
    async with AdminServer() as server:
        server.namespace("a/b", [str(number) for number in range(11)])
        async with source_of(server) as source:
            async with Mirror.read(connection, source, writing=False) as mirror:
                await verify(mirror, lambda _difference: None)
            assert await noted(connection) == {}
            async with Mirror.read(connection, source) as mirror:
                await verify(mirror, lambda _difference: None, fix=Deletions())
        before = await noted(connection)
        assert before.keys() == {"everything"}
        server.namespace("a/b")
        with pytest.raises(MassDeletion):
            await sync(connection, server)
        assert await noted(connection) == before


async def test_a_mirror_of_everything_replaces_those_of_parts(connection: Any) -> None:
    for scope in ("--tenant a", "--tenant b"):
        await record_success(connection, scope, "here")
    await record_success(connection, "--tenant a", "there")
    assert {scope: source for scope, (source, _) in (await noted(connection)).items()} == {
        "--tenant a": "there",
        "--tenant b": "here",
    }
    assert await connection.fetchval("SELECT broker_core.forget_mirror('--tenant a')") is True
    assert await connection.fetchval("SELECT broker_core.forget_mirror('--tenant a')") is False
    await record_success(connection, "everything", "here")
    assert (await noted(connection)).keys() == {"everything"}


async def test_a_server_shows_the_one_that_is_longest_ago(database: Database, connection: Any) -> None:
    async with serving(database.dsn) as broker:
        mirrors = present(broker.service.mirrors)
        await eventually(lambda: mirrors.last_success == 0.0, what="none has succeeded")
        assert METRIC in {
            each.name.removeprefix("broker_core_postgres_") for each in broker.service.metrics.collect()
        }
        await record_success(connection, "--tenant a", "here")
        await record_success(connection, "--tenant b", "here")
        oldest = min(when for _, when in (await noted(connection)).values())
        await eventually(lambda: broker.metric(METRIC) == pytest.approx(oldest, abs=1e-3), 60, what="shown")


async def test_a_server_shows_what_it_knew_while_the_database_is_away() -> None:
    with PostgresServer() as server:
        database = server.create_database()
        connection = await database.connect()
        await record_success(connection, "everything", "here")
        ((_, when),) = (await noted(connection)).values()
        await connection.close()
        async with serving(database.dsn) as broker:
            await eventually(lambda: broker.metric(METRIC) > 0, 60, what="shown")
            server.stop()
            await eventually(lambda: broker.service.server_pools.primary.down, 60, what="it is away")
            assert broker.metric(METRIC) == pytest.approx(when, abs=1e-3)


def test_the_status_says_it(database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "catalog.sqlite"
    create_topics(file, "persistent://a/b/x")
    status = ["postgres", "status", "--dsn", database.dsn]
    assert run(status) == 0
    assert "mirror         none has succeeded\n" in capfd.readouterr().out
    scope = ["--tenant", "b*", "--tenant", "a"]
    assert run(["postgres", "sync", "--catalog", str(file), *scope, "--dsn", database.dsn]) == 0
    capfd.readouterr()
    assert run(status) == 0
    (line,) = (line for line in capfd.readouterr().out.splitlines() if line.startswith("mirror "))
    assert line.endswith(f", --tenant a --tenant b* of {file}")
    assert run([*status, "--json"]) == 0
    (mirror,) = json.loads(capfd.readouterr().out)["mirrors"]
    assert mirror.keys() == {"scope", "source", "succeeded"}
    assert mirror["succeeded"] in line
