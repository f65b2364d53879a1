"""The start: with a database that is down, and with one that cannot be served from."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.errors import ListingFailed
from broker_core.names import Mode
from broker_core_postgres.listing.own_relation import RelationRefused
from broker_core_postgres.service import DatabaseRefused, PostgresService
from broker_core_postgres.settings import PostgresSettings
from tests.postgres.listing.lister_setup import fill
from tests.postgres.listing.test_lister import asking, names
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.postgres_server import Database

NS = "acme/orders"
VIEW = """
CREATE SCHEMA own;
CREATE TABLE own."Topics of ours" (
    namespace text COLLATE "C", domain text COLLATE "C", local_name text COLLATE "C", matched text COLLATE "C",
    properties jsonb
);
INSERT INTO own."Topics of ours" SELECT 'acme/orders', d, n, regexp_replace(n, '-partition-[0-9]+$', ''), '{"k": "v"}'
FROM unnest(ARRAY['a', 'b-partition-0', 'b-partition-1', 'c']) n, unnest(ARRAY['persistent', 'non-persistent']) d;
"""


@asynccontextmanager
async def started(**table: Any) -> AsyncIterator[PostgresService]:
    service = PostgresService(PostgresSettings(**table))
    await service.start()
    try:
        yield service
    finally:
        await service.close()


async def test_a_database_that_is_down_comes_up_later(empty_database: Database) -> None:
    nowhere = f"postgresql://postgres@127.0.0.1:{free_port()}/x"
    with capture_logs() as logs:
        async with started(dsn=nowhere) as service:
            with pytest.raises(ListingFailed) as failed:
                await service.lister.list_topics(asking())
            assert failed.value.reason == "unreachable"
    assert [(line["event"], line["hint"]) for line in logs] == [
        ("no connection to PostgreSQL", failed.value.message)
    ]


async def test_a_schema_that_is_missing_ends_the_start(empty_database: Database) -> None:
    with pytest.raises(DatabaseRefused, match="run `broker-core postgres migrate`"):
        async with started(dsn=empty_database.dsn):
            pass


async def test_a_schema_that_is_too_new_ends_the_start(database: Database) -> None:
    database.sql(
        "INSERT INTO broker_core.migrations (number, name, checksum) VALUES (9999, 'of_the_future', 'x')"
    )
    with pytest.raises(DatabaseRefused, match="upgrade broker-core-postgres"):
        async with started(dsn=database.dsn):
            pass


async def test_what_is_wrong_is_found_later_too(database: Database) -> None:
    await fill(database, NS, [("persistent", "a", {})])
    async with started(dsn=database.dsn) as service:
        assert names(await service.lister.list_topics(asking())) == ["a"]
        database.sql("UPDATE broker_core.migrations SET checksum = 'other' WHERE number = 1")
        database.server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{database.name}' AND pid <> pg_backend_pid()"
        )

        async def refused() -> str | None:
            try:
                await service.lister.list_topics(asking())
            except ListingFailed as failure:
                return failure.message if "released together" in failure.message else None
            return None

        assert await eventually(refused, 30)


async def test_trigrams_that_are_demanded(database: Database) -> None:
    async with started(dsn=database.dsn, trigrams="on") as service:
        assert service.lister.trigrams
    async with started(dsn=database.dsn, trigrams="off") as service:
        assert not service.lister.trigrams
    database.sql("DROP INDEX broker_core.topics_trigrams")
    async with started(dsn=database.dsn) as service:
        assert not service.lister.trigrams
    with pytest.raises(DatabaseRefused, match="trigrams is on"):
        async with started(dsn=database.dsn, trigrams="on"):
            pass


async def test_a_relation_of_the_operators_own(empty_database: Database) -> None:
    empty_database.sql(VIEW)
    async with started(dsn=empty_database.dsn, relation="own.Topics of ours", property_keys=["k"]) as service:
        lister = service.lister

        async def ask(*question: Any, **fields: Any) -> list[str]:
            return sorted(names(await lister.list_topics(asking(*question, **fields))))

        assert await ask() == ["a", "b-partition-0", "b-partition-1", "c"]
        assert len(await ask(mode=Mode.ALL)) == 8
        assert await ask(f"{NS}/b") == ["b-partition-0", "b-partition-1"]
        assert await ask(f"{NS}/[bc].*", properties={"k": "v"}) == ["b-partition-0", "b-partition-1", "c"]
        assert await ask(properties={"k": "other"}) == []
        assert await ask(f"{NS}/zzz") == []
        assert await ask("x/y/zzz") == []
        assert (await lister.list_topics(asking(namespace="never/known"))).is_pass_through
        answer = await lister.list_topics(asking())
        assert answer.version is None
        assert service.change_log is None
        # The contract says nothing of single rows: an invalid one is an error, never another listing.
        for wrong in ("'a/b', 'a/b'", "'', ''", "NULL, 'x'"):
            empty_database.sql(
                f"INSERT INTO own.\"Topics of ours\" SELECT 'acme/orders', 'persistent', {wrong}, '{{}}'"
            )
            with pytest.raises(ListingFailed):
                await ask()
            empty_database.sql(
                "DELETE FROM own.\"Topics of ours\" WHERE local_name IS NULL OR local_name IN ('', 'a/b')"
            )
        assert len(await ask()) == 4


@pytest.mark.parametrize("kind", ["TABLE", "VIEW", "MATERIALIZED VIEW"])
async def test_a_snapshot_of_any_relation(empty_database: Database, kind: str) -> None:
    empty_database.sql(f'{VIEW} CREATE {kind} own.listed AS SELECT * FROM own."Topics of ours"')
    async with started(dsn=empty_database.dsn, relation="own.listed", property_keys=["k"]) as service:
        asked = asking(properties={"k": "v"})
        assert len((await service.lister.list_topics(asked)).topics) == 4
        locked = kind != "MATERIALIZED VIEW"
        assert service.server_pools.lock == ('"own"."listed"' if locked else None)
        async with service.server_pools.acquire(snapshot=True) as connection:
            assert locked is await connection.fetchval(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'own.listed'::regclass)"
            )


@pytest.mark.parametrize(
    ("relation", "said"),
    [
        ("own.nothing", "there is no table or view"),
        ("own.broken", "matched is missing"),
        ('own."; DROP TABLE own.broken; --"', "there is no table or view"),
        ("x; DROP TABLE own.broken", "there is no table or view"),
    ],
    ids=range(4),
)
async def test_a_relation_that_breaks_the_contract_ends_the_start(
    empty_database: Database, relation: str, said: str
) -> None:
    empty_database.sql(
        'CREATE SCHEMA own; CREATE TABLE own.broken (namespace text COLLATE "C", domain text COLLATE "C", '
        'local_name text COLLATE "C")'
    )
    with pytest.raises(DatabaseRefused, match=re.escape(said)):
        async with started(dsn=empty_database.dsn, relation=relation):
            pass
    empty_database.sql("SELECT FROM own.broken")


def test_a_relation_that_is_no_name() -> None:
    with pytest.raises(RelationRefused):
        PostgresService(PostgresSettings(relation="a.b.c"))
