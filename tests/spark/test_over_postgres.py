"""A generation of the Postgres plugin's database follows that plugin's change log. Other questions are its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from broker_core.change_log import CatalogVersion
from broker_core.listing.listing_hash import topics_hash, utf16_key
from broker_core.names import Mode, NamespaceName
from broker_core.testing import Server, serve
from broker_core_postgres.plugin import PostgresPlugin
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.store import open_store
from broker_core_spark.store.publishing import begin_build
from tests.support.generation_builder import build_generation
from tests.support.narrowed import present
from tests.support.postgres_server import Database, PostgresServer

NAMESPACE = "public/default"
QUESTIONS: list[tuple[str | None, dict[str, str]]] = [
    (None, {}),
    (f"{NAMESPACE}/t-1.*", {}),
    (f"{NAMESPACE}/t-.*[02468]", {}),
    (None, {"team": "red"}),
    (f"{NAMESPACE}/t-.*[13579]", {"team": "blue"}),
]
UNREGISTERED: list[tuple[str | None, dict[str, str]]] = [
    (f"{NAMESPACE}/t-2.*", {}),
    (f"{NAMESPACE}/t-1.*", {"team": "red"}),
]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with PostgresServer() as server:
        yield server.create_database()


def expected(topics: dict[str, str | None], pattern: str | None, properties: dict[str, str]) -> list[str]:
    found = []
    for local, team in topics.items():
        if properties.get("team", team) != team:
            continue
        last = local[-1]
        kept = {
            f"{NAMESPACE}/t-1.*": local.startswith("t-1"),
            f"{NAMESPACE}/t-2.*": local.startswith("t-2"),
            f"{NAMESPACE}/t-.*[02468]": last in "02468",
            f"{NAMESPACE}/t-.*[13579]": last in "13579",
            None: True,
        }[pattern]
        if kept:
            found.append(f"persistent://{NAMESPACE}/{local}")
    return sorted(found, key=utf16_key)


async def check(server: Server, topics: dict[str, str | None]) -> None:
    for pattern, properties in [*QUESTIONS, *UNREGISTERED]:
        names = expected(topics, pattern, properties)
        answer = await server.list(NAMESPACE, pattern=pattern, properties=properties)
        assert (answer.topics, answer.topics_hash) == (names, topics_hash(names)), (pattern, properties)


async def test_the_database_is_followed(database: Database) -> None:
    random = Random(7)
    topics: dict[str, str | None] = {
        f"t-{number}": random.choice([None, "red", "blue"]) for number in range(60)
    }
    connection = await database.connect()

    async def put(local: str, team: str | None) -> None:
        await connection.execute(
            "INSERT INTO broker_core.topics (namespace, domain, local_name, properties) VALUES ($1, $2, $3, $4)"
            " ON CONFLICT (namespace, domain, local_name) DO UPDATE SET properties = EXCLUDED.properties",
            *(NAMESPACE, "persistent", local, json.dumps({} if team is None else {"team": team})),
        )

    for local, team in topics.items():
        await put(local, team)
    spark, uri = SparkPlugin(), "memory://over-postgres"
    tables: dict[str, dict[str, Any]] = {
        "shrink_guard": {"enabled": False},  # a TRUNCATE is not told one by one
        "plugins": {
            "enabled": ["spark", "postgres"],
            "spark": {"store": uri, "refresh": "1h", "source_timeout": "30s"},
            "postgres": {"dsn": database.dsn, "property_keys": ["team"]},
        },
    }
    async with serve({"spark": spark, "postgres": PostgresPlugin()}, settings=tables) as server:
        (log,) = server.broker.pipeline.dispatcher.change_logs
        version = await log.version(NamespaceName.parse(NAMESPACE))
        await asyncio.to_thread(_publish, uri, version, dict(topics))
        await check(server, topics)  # from the database: nothing is served yet
        await spark.lister.refresher.refresh()
        for _ in range(12):
            served = spark.lister.counts.answers["served"]
            await check(server, topics)
            assert spark.lister.counts.answers["served"] == served + len(QUESTIONS)
            local = f"t-{random.randrange(80)}"
            if local in topics and random.random() < 0.5:
                await connection.execute("DELETE FROM broker_core.topics WHERE local_name = $1", local)
                del topics[local]
            else:
                topics[local] = random.choice([None, "red", "blue"])
                await put(local, topics[local])
        assert present(spark.lister.refresher.served).overlay_names() > 5
        # What the log cannot tell is read from the database.
        await connection.execute("TRUNCATE broker_core.topics")
        topics.clear()
        await check(server, topics)
    await connection.close()


def _publish(uri: str, version: CatalogVersion, topics: dict[str, str | None]) -> None:
    store = open_store(uri)
    with begin_build(store) as build:
        manifest = build_generation(
            store,
            {NAMESPACE: {"persistent": list(topics)}},
            [
                CanonicalQuestion.of(NAMESPACE, Mode.PERSISTENT, pattern, given)
                for pattern, given in QUESTIONS
            ],
            catalogue_id=version.catalog_id,
            versions={NAMESPACE: version.number},
            properties={
                f"persistent://{NAMESPACE}/{local}": {"team": team} for local, team in topics.items() if team
            },
            property_keys=["team"],
        )
        build.publish(manifest)
