from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core import Mode
from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import Deletions, MassDeletion
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.merge import namespaces_of_database
from broker_core_postgres.fill.sync.mirror import Mirror, MirrorReport
from tests.postgres.fill.sync.mirror_setup import listed, source_of
from tests.postgres.listing.lister_setup import opened_lister
from tests.postgres.listing.test_lister import asking, names
from tests.support.admin_server import AdminServer, Fault
from tests.support.postgres_server import Database

USUAL = Deletions()


@pytest.fixture
async def server() -> AsyncIterator[AdminServer]:
    async with AdminServer() as server:
        server.namespace("a/b", ["x", "p-partition-0", "p-partition-1"])
        server.partitioned["a/b", "persistent"] = ["p"]
        server.properties = {"persistent://a/b/p": {"k": "v"}}
        server.namespace("a/empty")
        server.namespace("c/d", ["z"])
        yield server


async def sync(connection: Any, server: AdminServer, deletions: Deletions = USUAL) -> MirrorReport:
    async with source_of(server) as source, Mirror.read(connection, source) as mirror:
        return await mirror.write(deletions)


async def test_the_database_becomes_what_the_cluster_says(server: AdminServer, connection: Any) -> None:
    report = await sync(connection, server)
    assert (report.counts.added, report.counts.rows, report.complete) == (4, 4, True)
    assert report.written.keys() == {"a/b", "a/empty", "c/d"}
    own = {"k": "v"}
    assert await listed(connection) == {
        "persistent://a/b/x": {},
        "persistent://a/b/p-partition-0": own,
        "persistent://a/b/p-partition-1": own,
        "persistent://c/d/z": {},
    }
    # A namespace without topics is marked as filled.
    assert (await namespaces_of_database(connection)).keys() == {"a/b", "a/empty", "c/d"}


async def test_only_what_differs_is_written(server: AdminServer, connection: Any) -> None:
    await sync(connection, server)
    before = await namespaces_of_database(connection)
    report = await sync(connection, server)
    assert not report.written
    assert await namespaces_of_database(connection) == before
    server.topics["c/d", "persistent"].append("new")
    report = await sync(connection, server)
    assert report.written.keys() == {"c/d"}
    after = await namespaces_of_database(connection)
    assert after == before | {"c/d": before["c/d"] + 1}


async def test_what_the_cluster_has_no_more_is_deleted(server: AdminServer, connection: Any) -> None:
    await sync(connection, server)
    server.topics["a/b", "persistent"].remove("x")
    for domain in ("persistent", "non-persistent"):
        del server.topics["c/d", domain]
        del server.partitioned["c/d", domain]
    server.answers["namespaces/c"] = []
    server.answers["tenants"] = ["a", "c"]
    report = await sync(connection, server)
    assert report.counts.removed == 2
    assert all("/p-partition-" in name for name in await listed(connection))
    assert "c/d" in await namespaces_of_database(connection), "its version goes on"


async def test_mass_deletions_need_a_word_and_nothing_is_written_without(
    server: AdminServer, connection: Any
) -> None:
    server.namespace("a/large", [f"topic-{number}" for number in range(150)])
    await sync(connection, server)
    before = await listed(connection)
    server.topics["a/large", "persistent"] = ["only"]
    server.topics["a/b", "persistent"].append("new")
    with pytest.raises(MassDeletion, match="150 of 154"):
        await sync(connection, server)
    assert await listed(connection) == before
    with pytest.raises(MassDeletion):
        await sync(connection, server, Deletions(most=149))
    report = await sync(connection, server, Deletions(most=150))
    assert (report.counts.added, report.counts.removed) == (2, 150)


@pytest.mark.parametrize(
    "path", ["persistent/a/b", "persistent/a/b/partitioned", "persistent/a/b/x/properties"]
)
async def test_a_namespace_that_fails_is_left_as_it_is(
    server: AdminServer, connection: Any, path: str
) -> None:
    await sync(connection, server)
    before = await listed(connection)
    server.fail(path, Fault(500), always=True)
    server.topics["a/b", "persistent"].remove("p-partition-1")
    server.topics["c/d", "persistent"].append("new")
    report = await sync(connection, server, Deletions(mass=True))
    assert report.failed.keys() == {"a/b"}
    assert not report.complete
    assert await listed(connection) == before | {"persistent://c/d/new": {}}


@pytest.mark.parametrize("path", ["tenants", "namespaces/a"])
async def test_a_cluster_that_fails_deletes_nothing(server: AdminServer, connection: Any, path: str) -> None:
    await sync(connection, server)
    before = await listed(connection)
    server.fail(path, Fault(503), always=True)
    server.fail("namespaces/c", Fault(503), always=True)
    with pytest.raises(BrokerCoreError, match="503"):
        await sync(connection, server, Deletions(mass=True))
    assert await listed(connection) == before


async def test_a_cluster_that_is_gone_deletes_nothing(connection: Any) -> None:
    async with AdminServer() as server:
        server.namespace("a/b", ["x"])
        await sync(connection, server)
    with pytest.raises(BrokerCoreError):
        await sync(connection, server, Deletions(mass=True))
    assert await listed(connection) == {"persistent://a/b/x": {}}


async def test_only_one_writes_at_a_time(server: AdminServer, connection: Any, database: Database) -> None:
    async with database.connected() as other:
        async with source_of(server) as source, Mirror.read(connection, source):
            with pytest.raises(FillingFailed, match="Another sync"):
                await sync(other, server)
            async with Mirror.read(other, source, writing=False) as mirror:
                assert (await mirror.counts())["a/b"].added == 3
        assert (await sync(other, server)).counts.added == 4


async def test_a_connection_is_given_back_as_it_was(server: AdminServer, connection: Any) -> None:
    before = await connection.fetchval("SHOW work_mem")
    await sync(connection, server)
    assert await connection.fetchval("SHOW work_mem") == before
    assert await connection.fetchval("SELECT to_regclass('pg_temp.broker_core_staged')") is None


async def test_a_pair_of_a_cluster_keeps_the_properties_of_each(
    server: AdminServer, database: Database, connection: Any
) -> None:
    """Brokers do not make such a pair any more, but a cluster may have an old one. Files with it are refused."""
    server.topics["a/b", "persistent"] += ["y", "y-partition-0"]
    server.properties |= {
        "persistent://a/b/y": {"region": "eu"},
        "persistent://a/b/y-partition-0": {"region": "us"},
    }
    assert (await sync(connection, server)).complete
    assert not (await sync(connection, server)).written
    async with source_of(server) as source, Mirror.read(connection, source, writing=False) as mirror:
        assert [difference async for difference in mirror.differences()] == []
    async with opened_lister(database, property_keys=["region"]) as lister:
        for region, local in (("eu", "y"), ("us", "y-partition-0")):
            selected = await lister.list_topics(
                asking(namespace="a/b", mode=Mode.ALL, properties={"region": region})
            )
            assert names(selected) == [local]
        everything = names(await lister.list_topics(asking(namespace="a/b", mode=Mode.ALL)))
        assert {"y", "y-partition-0"} <= set(everything)
