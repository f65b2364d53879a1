"""What is counted of Kafka requests, alone and of a server under traffic."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.catalog import AclRow
from broker_core.kafka.acls.bindings import Operation, PatternType, Permission, ResourceType
from broker_core.metrics.metrics import Metrics
from broker_core.names import NamespaceName, TopicName
from broker_core.servers.kafka.request_metrics import CLOSED, CUT, RequestMetrics, error_in
from broker_core.settings import LogSettings
from broker_core.wire.kafka import (
    API_VERSIONS,
    CREATE_TOPICS,
    DESCRIBE_CONFIGS,
    LIST_TOPICS,
    METADATA,
    PRODUCE,
    Encoded,
    ErrorCode,
)
from tests.support.eventually import eventually
from tests.support.kafka_serving import kafka_broker, raw_client

MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def value(metrics: Metrics, **labels: str) -> float | None:
    return metrics.registry.get_sample_value("broker_core_kafka_requests_total", labels)


def test_apis_are_there_from_the_start() -> None:
    metrics = Metrics()
    requests = RequestMetrics(metrics, ["Metadata"])
    assert value(metrics, api="Metadata", error="NONE") == 0
    assert value(metrics, api="Metadata", error="closed") == 0
    requests.ended("Metadata", CLOSED, 0.01)
    requests.ended("Metadata", CUT, 0.01)
    assert value(metrics, api="Metadata", error="closed") == 1
    assert value(metrics, api="Metadata", error="cut") == 1
    seconds = "broker_core_kafka_request_seconds_count"
    assert metrics.registry.get_sample_value(seconds, {"api": "Metadata"}) == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({}, "NONE"),
        ({"error_code": 0, "topics": Encoded(3, [])}, "NONE"),
        ({"error_code": ErrorCode.SECURITY_DISABLED}, "SECURITY_DISABLED"),
        ({"brokers": [{"port": 1}], "topics": [{"name": "a"}, {"error_code": MISSING}]}, MISSING.name),
        ({"results": Encoded(1, [], MISSING)}, MISSING.name),
        ({"mechanisms": ["PLAIN"], "topics": None}, "NONE"),
        ({"responses": [{"name": "a", "partition_responses": [{"error_code": MISSING}]}]}, MISSING.name),
        ({"responses": [{"name": "a", "partition_responses": []}]}, "NONE"),
        ({"topics": [{"name": "a", "partitions": []}]}, "NONE"),
        ({"topics": [{"error_code": 0}] * 100 + [{"error_code": MISSING}]}, "NONE"),
        ({"error_code": 32_000}, "other"),
    ],
)
def test_the_error_is_that_of_the_answer_or_of_a_row(answer: dict[str, Any], error: str) -> None:
    metrics = Metrics()
    RequestMetrics(metrics).ended("x", error_in(answer), 0.1)
    assert value(metrics, api="x", error=error) == 1


async def test_requests_of_clients_are_counted(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        metrics = broker.pipeline.metrics
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            await client.ask(API_VERSIONS, 0, {})
            await client.ask(METADATA, 12, {"topics": None})
            await client.ask(METADATA, 12, {"topics": [{"name": "nobody"}]})
            await client.ask(CREATE_TOPICS, 7, {"topics": [{"name": "a b"}], "timeout_ms": 9000})
            asked = {"resource_type": 2, "resource_name": "nobody", "configuration_keys": None}
            await client.ask(DESCRIBE_CONFIGS, 4, {"resources": [asked]})
            client.send(PRODUCE, 9, {"acks": 0, "topic_data": []})
            with capture_logs():
                assert await client.message() == b""
        assert value(metrics, api="ApiVersions", error="NONE") == 1
        assert value(metrics, api="Metadata", error="NONE") == 1
        assert value(metrics, api="Metadata", error=MISSING.name) == 1
        assert value(metrics, api="CreateTopics", error="INVALID_TOPIC_EXCEPTION") == 1
        assert value(metrics, api="DescribeConfigs", error=MISSING.name) == 1
        assert value(metrics, api="Produce", error="closed") == 1


async def test_the_access_log_says_which_software_asks_and_how_many_topics_it_is_shown(
    tmp_path: Path,
) -> None:
    lines = tmp_path / "access.jsonl"
    log = LogSettings.model_validate({"access": {"path": lines}})
    namespace = NamespaceName.parse("public/default")
    may = AclRow(
        ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:*", "*", Operation.DESCRIBE, Permission.ALLOW
    )
    async with kafka_broker(tmp_path, tables={"log": log}) as broker:
        catalog = broker.catalog
        assert catalog is not None
        for name in ("orders", "secrets"):
            topic = TopicName.parse(f"persistent://public/default/{name}")
            await asyncio.to_thread(catalog.create, topic, partitions=3)
        await asyncio.to_thread(catalog.change_kafka_acls, namespace, [may], [])
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            software = {"client_software_name": "kafka-x", "client_software_version": "4.3.1"}
            await client.ask(API_VERSIONS, 4, software)
            for _ in range(2):
                listed = await client.ask(LIST_TOPICS, 0, {"list_internal": True})
                assert len(listed["topics"]) == 1
        await eventually(lambda: lines.exists() and len(lines.read_text().splitlines()) == 2)
    for line in map(json.loads, lines.read_text().splitlines()):
        assert (line["client_version"], line["transport"]) == ("kafka-x-4.3.1", "kafka")
        assert line["topics"] == 1
        assert "bytes" not in line
