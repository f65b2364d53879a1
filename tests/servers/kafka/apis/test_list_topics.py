from __future__ import annotations

from pathlib import Path

from broker_core import TopicListingResult
from broker_core.catalog import SqliteCatalog
from broker_core.wire.kafka import LIST_TOPICS, ErrorCode
from tests.support.kafka_serving import kafka_broker, raw_client
from tests.support.kafka_topics import create
from tests.support.plugins import PluginOf


async def test_names_with_and_without_internal_ones(catalog: SqliteCatalog) -> None:
    create(catalog, "orders", 3)
    create(catalog, "__consumer_offsets", 2)
    async with kafka_broker(catalog.path.parent) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            listed = await client.ask(LIST_TOPICS, 0, {"list_internal": True})
            assert listed == {
                "error_code": 0,
                "topics": [
                    {"name": "__consumer_offsets", "internal": True},
                    {"name": "orders", "internal": False},
                ],
            }
            listed = await client.ask(LIST_TOPICS, 0, {"list_internal": False})
            assert listed["topics"] == [{"name": "orders", "internal": False}]


async def test_a_failure_is_an_error_code(tmp_path: Path) -> None:
    def fails() -> TopicListingResult:
        raise RuntimeError("no")

    async with kafka_broker(tmp_path, plugins={"p": PluginOf(list_topics=fails)}) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            listed = await client.ask(LIST_TOPICS, 0, {"list_internal": True})
            assert listed == {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR, "topics": []}
