"""Kafka clients get the ids of topics that the plugin lists, and find the topics by them."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from broker_core.settings import PluginsSettings
from broker_core.wire.kafka import METADATA
from broker_core_postgres.plugin import PostgresPlugin
from tests.support.kafka_serving import kafka_broker, raw_client
from tests.support.postgres_server import Database

_RELATION = """CREATE TABLE mine (namespace text COLLATE "C", domain text COLLATE "C", local_name text COLLATE "C",
    matched text COLLATE "C");
    INSERT INTO mine SELECT namespace, domain, local_name, matched FROM broker_core.topics"""


@pytest.mark.parametrize("relation", [None, "mine"])
async def test_the_ids_of_the_database_are_those_of_kafka(
    database: Database, tmp_path: Path, relation: str | None
) -> None:
    database.sql(
        "INSERT INTO broker_core.topics (namespace, local_name)"
        " VALUES ('public/default', 'plain'), ('public/default', 'p-partition-0'), ('public/default', 'p-partition-1')"
    )
    database.sql(_RELATION)
    table = {"dsn": database.dsn} | ({} if relation is None else {"relation": relation})
    plugins = PluginsSettings.model_validate({"enabled": ["postgres"], "postgres": table})
    told = []
    for _ in range(2):  # the ids are the same after another start
        async with kafka_broker(
            tmp_path, plugins={"postgres": PostgresPlugin()}, tables={"plugins": plugins}
        ) as broker:
            assert broker.kafka_address is not None
            async with raw_client(broker.kafka_address) as client:
                rows = (await client.ask(METADATA, 12, {"topics": None}))["topics"]
                ids = {row["name"]: row["topic_id"] for row in rows}
                assert {row["name"]: len(row["partitions"]) for row in rows} == {"plain": 1, "p": 2}
                asked = {"topics": [{"topic_id": each, "name": None} for each in ids.values()]}
                found = (await client.ask(METADATA, 12, asked))["topics"]
                assert {row["name"]: row["topic_id"] for row in found} == ids
                assert {row["error_code"] for row in found} == {0}
        told.append(ids)
    assert told[0] == told[1]
    assert len(set(told[0].values()) - {uuid.UUID(int=0)}) == 2
    if relation is None:
        async with database.connected() as connection:
            stored = await connection.fetch("SELECT matched, topic_id FROM broker_core.topics")
        assert dict(stored) == told[0]
