"""The rows of handlers, and the lines of the audit log for what they change."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.catalog import CatalogBusy
from broker_core.kafka.acls.bindings import Operation, PatternType, Permission, ResourceType
from broker_core.servers.kafka.requests.call import CloseClient, KafkaCall, audited, row_of
from broker_core.servers.kafka.row_error import RowError
from broker_core.servers.kafka.server import KafkaServer
from broker_core.service.audit import AUDIT_LOGGER
from broker_core.wire.kafka import (
    ALTER_CONFIGS,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
    Api,
    ErrorCode,
    Fields,
)
from tests.support.kafka_calls import call_of
from tests.support.kafka_serving import kafka_broker, raw_client

A = "persistent://public/default/a"
NEW = {"name": "a", "num_partitions": 1, "replication_factor": 1}
ACL = {
    "resource_type": ResourceType.TOPIC,
    "resource_name": "a",
    "resource_pattern_type": PatternType.LITERAL,
    "principal": "User:a",
    "host": "*",
    "operation": Operation.READ,
    "permission_type": Permission.ALLOW,
}
FILTER = {
    "resource_type_filter": ResourceType.ANY,
    "pattern_type_filter": PatternType.ANY,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}
UNSEEN = ErrorCode.UNKNOWN_SERVER_ERROR.name


def lines(logs: Any, *fields: str) -> list[list[Any]]:
    return [[line.get(field) for field in fields] for line in logs if line.get("logger") == AUDIT_LOGGER]


async def test_each_row_has_a_line(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path, super_users=["User:ANONYMOUS"]) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            with capture_logs() as logs:
                new = {"name": "a", "num_partitions": 2, "replication_factor": 1}
                create = {"topics": [new, {"name": "a b"}], "timeout_ms": 9000}
                await client.ask(CREATE_TOPICS, 7, create)
                await client.ask(CREATE_TOPICS, 7, create | {"validate_only": True})
                grown = {"topics": [{"name": "a", "count": 5, "assignments": None}], "timeout_ms": 9000}
                await client.ask(CREATE_PARTITIONS, 3, grown)
                config = {"name": "retention.ms", "value": "4711"}
                resources = [
                    {"resource_type": 2, "resource_name": "a", "configs": [config]},
                    {"resource_type": 4, "resource_name": "1", "configs": []},
                ]
                await client.ask(ALTER_CONFIGS, 1, {"resources": resources})
                deleted = {"topics": [{"name": "a"}, {"name": "b"}], "timeout_ms": 9000}
                await client.ask(DELETE_TOPICS, 6, deleted)
    assert lines(logs, "action", "outcome", "target", "cause", "partitions", "configs") == [
        ["create_topic", "done", A, None, None, None],
        ["create_topic", "refused", f"{A} b", "INVALID_TOPIC_EXCEPTION", None, None],
        ["add_partitions", "done", A, None, 5, None],
        ["alter_configs", "done", A, None, None, 1],
        ["alter_configs", "refused", "BROKER:1", "POLICY_VIOLATION", None, 0],
        ["delete_topic", "done", A, None, None, None],
        ["delete_topic", "refused", A[:-1] + "b", "UNKNOWN_TOPIC_OR_PARTITION", None, None],
    ]
    assert {line["transport"] for line in logs if line.get("logger") == AUDIT_LOGGER} == {"kafka"}
    assert "4711" not in str(logs)  # no value of a config


async def test_acls_are_told_in_words(tmp_path: Path) -> None:
    acl = ACL | {
        "resource_name": "orders",
        "resource_pattern_type": PatternType.PREFIXED,
        "principal": "User:alice",
    }
    wrong = FILTER | {"operation": 77}
    async with kafka_broker(tmp_path, super_users=["User:ANONYMOUS"]) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            with capture_logs() as logs:
                await client.ask(CREATE_ACLS, 3, {"creations": [acl]})
                await client.ask(DELETE_ACLS, 3, {"filters": [FILTER, wrong]})
    target, words = "TOPIC:PREFIXED:orders", "allow User:alice from *: READ on topic prefixed orders"
    assert lines(logs, "action", "outcome", "target", "acl", "cause") == [
        ["create_acl", "done", target, words, None],
        ["delete_acl", "done", target, words, None],
        ["delete_acl", "refused", None, None, "INVALID_REQUEST"],
    ]


def none_made(_: KafkaCall, error: RowError) -> Fields:
    return {"error_code": error.code, "error_message": error.message}


@pytest.mark.parametrize(
    ("api", "version", "body", "rows", "target"),
    [
        (CREATE_TOPICS, 7, {"topics": [NEW]}, "topics", A),
        (CREATE_PARTITIONS, 3, {"topics": [{"name": "a", "count": 5}]}, "results", A),
        (DELETE_TOPICS, 6, {"topics": [{"name": "a"}]}, "responses", A),
        (DELETE_TOPICS, 4, {"topic_names": ["a"]}, "responses", A),
        (
            ALTER_CONFIGS,
            1,
            {"resources": [{"resource_type": 2, "resource_name": "a", "configs": []}]},
            "responses",
            A,
        ),
        (CREATE_ACLS, 3, {"creations": [ACL]}, "results", "TOPIC:LITERAL:a"),
        (DELETE_ACLS, 3, {"filters": [FILTER]}, "filter_results", None),
    ],
    ids=lambda value: value.name if isinstance(value, Api) else None,
)
async def test_what_nobody_foresaw_is_told_to_the_client_and_the_log(
    api: Api, version: int, body: Fields, rows: str, target: str | None, tmp_path: Path
) -> None:
    async with kafka_broker(tmp_path, super_users=["User:ANONYMOUS"]) as broker:
        server = broker._servers["kafka"]
        assert isinstance(server, KafkaServer)
        assert broker.kafka_address is not None
        services = server._services
        async with raw_client(broker.kafka_address) as client:
            with capture_logs() as logs, pytest.MonkeyPatch.context() as patch:
                for place, name in (
                    (services.named, "by_name"),
                    (services.changes, "change"),
                    (services.authorizer, "allows"),
                ):
                    patch.setattr(type(place), name, fail)
                answer = await client.ask(api, version, body)
            assert [row["error_code"] for row in answer[rows]] == [ErrorCode.UNKNOWN_SERVER_ERROR]
            assert (await client.ask(METADATA, 12, {"topics": []}))["brokers"]  # it is connected still
    assert lines(logs, "outcome", "cause", "target") == [["failed", UNSEEN, target]]
    (told,) = [line for line in logs if line["event"] == "Kafka change failed"]
    assert isinstance(told["exc_info"], ZeroDivisionError)


def fail(*_: object, **__: object) -> None:
    raise ZeroDivisionError


async def test_a_foreseen_failure_has_its_own_code() -> None:
    async def later(_: KafkaCall) -> Fields:
        raise CatalogBusy("busy")

    answer = partial(audited, "create_topic", later, lambda *_: [row_of("x", 7)], none_made)
    with capture_logs() as logs:
        told = await answer(call_of(CREATE_TOPICS, 7))
    assert told == {"error_code": ErrorCode.REQUEST_TIMED_OUT, "error_message": "busy"}
    assert len(logs) == 1


async def test_what_was_so_already_is_unchanged(tmp_path: Path) -> None:
    config = {"name": "cleanup.policy", "config_operation": 2, "value": "compact"}
    appended = {"resources": [{"resource_type": 2, "resource_name": "a", "configs": [config]}]}
    replaced = {"resources": [{"resource_type": 2, "resource_name": "a", "configs": []}]}
    async with kafka_broker(tmp_path, super_users=["User:ANONYMOUS"]) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            await client.ask(CREATE_TOPICS, 7, {"topics": [NEW], "timeout_ms": 9000})
            with capture_logs() as logs:
                for _ in range(2):
                    await client.ask(INCREMENTAL_ALTER_CONFIGS, 1, appended)
                for _ in range(2):
                    await client.ask(ALTER_CONFIGS, 1, replaced)
                for _ in range(2):
                    await client.ask(CREATE_ACLS, 3, {"creations": [ACL]})
                for _ in range(2):
                    await client.ask(DELETE_ACLS, 3, {"filters": [FILTER]})
    each = ["alter_configs", "alter_configs", "create_acl", "delete_acl"]
    expected = [[action, outcome] for action in each for outcome in ("done", "unchanged")]
    assert lines(logs, "action", "outcome") == expected


@pytest.mark.parametrize(
    ("error", "outcome"), [(CloseClient("no"), "failed"), (asyncio.CancelledError(), "abandoned")]
)
async def test_a_request_without_an_answer_has_one_line(error: BaseException, outcome: str) -> None:
    async def later(_: KafkaCall) -> Fields:
        raise error

    answer = partial(audited, "delete_acl", later, lambda *_: [], none_made)
    with capture_logs() as logs, pytest.raises(type(error)):
        await answer(call_of(DELETE_ACLS, 3))
    assert lines(logs, "action", "outcome") == [["delete_acl", outcome]]
