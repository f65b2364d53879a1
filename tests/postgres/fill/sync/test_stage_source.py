from __future__ import annotations

from typing import Any

import pytest

from broker_core.errors import BrokerCoreError
from broker_core.names import NamespaceName
from broker_core_postgres.fill.storage_limits import longest_local_name
from broker_core_postgres.fill.sync.scope import EVERYTHING, Scope
from broker_core_postgres.fill.sync.stage_source import stage_source
from tests.postgres.fill.sync.mirror_setup import source_of
from tests.support.admin_server import AdminServer, Fault

_STAGED = """SELECT namespace || ' ' || domain || ' ' || local_name || ' ' || coalesce(properties::text, '-')
    FROM pg_temp.broker_core_staged ORDER BY 1"""


async def rows_of_table(connection: Any) -> list[str]:
    return [row[0] for row in await connection.fetch(_STAGED)]


async def test_all_namespaces_are_staged(connection: Any) -> None:
    async with AdminServer() as server:
        server.namespace("a/b", ["x", "y"])
        server.namespace("a/c", ["z"], domain="non-persistent")
        server.properties = {"persistent://a/b/x": {"k": "v"}}
        told: list[tuple[int, int, int]] = []
        async with source_of(server) as source:
            staged = await stage_source(
                connection, source, EVERYTHING, parallel=1, progress=lambda *now: told.append(now)
            )
    assert staged.namespaces == ["a/b", "a/c"]
    assert staged.names == 3
    assert told == [(1, 2, 2), (2, 2, 3)]
    assert await rows_of_table(connection) == [
        'a/b persistent x {"k": "v"}',
        "a/b persistent y {}",
        "a/c non-persistent z {}",
    ]


async def test_namespaces_that_only_the_database_has_are_known_to_be_empty(connection: Any) -> None:
    for namespace in ("a/gone", "secret/one", "other/one"):
        await connection.execute("SELECT broker_core.declare_namespace($1)", namespace)
    async with AdminServer() as server:
        server.namespace("a/b", ["x"])
        server.namespace("secret/two")
        server.fail("namespaces/secret", Fault(403), always=True)
        async with source_of(server) as source:
            staged = await stage_source(connection, source, EVERYTHING)
            # The namespaces of a tenant that cannot be read are left out.
            assert staged.namespaces == ["a/b", "a/gone", "other/one"]
            assert staged.failed.keys() == {"secret"}
            staged = await stage_source(connection, source, Scope.parse(["a"], []))
            assert staged.namespaces == ["a/b", "a/gone"]


async def test_a_namespace_that_fails_is_not_staged(connection: Any) -> None:
    async with AdminServer() as server:
        server.namespace("a/b", ["x"])
        server.namespace("a/bad", ["y"])
        server.namespace("a/long", ["y" * (longest_local_name(NamespaceName("a", "long")) + 1)])
        server.fail("persistent/a/bad", Fault(500), always=True)
        async with source_of(server, properties=False) as source:
            staged = await stage_source(connection, source, EVERYTHING)
            assert staged.namespaces == ["a/b"]
            assert staged.failed.keys() == {"a/bad", "a/long"}
            assert "more bytes than the database can hold" in staged.failed["a/long"]
            assert await rows_of_table(connection) == ["a/b persistent x -"]
            server.fail("persistent/a/b", Fault(500), always=True)
            with pytest.raises(BrokerCoreError, match="No namespace of the cluster can be read"):
                await stage_source(connection, source, EVERYTHING)
