from __future__ import annotations

from dataclasses import replace
from typing import Any

from broker_core.catalog import SqliteCatalog
from broker_core.servers.kafka.apis.transactions import TRANSACTION_ROWS
from broker_core.wire.kafka import DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS, Fields
from tests.support.kafka_calls import NotX, answer_of, call_of, services_of
from tests.support.kafka_topics import create, kafka_topics

LIST, DESCRIBE, PRODUCERS = TRANSACTION_ROWS


async def listed(**body: Any) -> Fields:
    return await LIST.answered(call_of(LIST_TRANSACTIONS, 2, body))


async def test_there_are_no_transactions() -> None:
    assert await listed() == {"unknown_state_filters": [], "transaction_states": []}
    found = await listed(state_filters=["Ongoing", "Bad", "bad"])
    assert found["unknown_state_filters"] == ["Bad", "bad"]


async def test_a_pattern_that_cannot_run_is_refused(catalog: SqliteCatalog) -> None:
    async with kafka_topics(catalog) as m:
        services = replace(services_of(), pipeline=m.pipeline)
        found = []
        for pattern in ("a.*", "(", "a(?!b)"):
            body = {"transactional_id_pattern": pattern, "state_filters": ["Bad"]}
            found.append(await LIST.answered(call_of(LIST_TRANSACTIONS, 2, body, services=services)))
    assert found == [
        {"unknown_state_filters": ["Bad"], "transaction_states": []},
        {"error_code": 128},
        {"error_code": 128},
    ]


def test_no_transaction_is_found() -> None:
    body = {"transactional_ids": ["t", "t", "", "x"]}
    answer = answer_of(
        DESCRIBE, call_of(DESCRIBE_TRANSACTIONS, 0, body, services=services_of(authorizer=NotX()))
    )
    assert [row["error_code"] for row in answer["transaction_states"]] == [105, 105, 42, 53]


async def test_no_partition_has_producers(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 2)
    create(catalog, "x", 1)
    asked = {"a": [0, 7], "nope": [0], "a b": [0], "x": [0]}
    body = {"topics": [{"name": name, "partition_indexes": some} for name, some in asked.items()]}
    async with kafka_topics(catalog, authorizer=NotX()) as m:
        call = call_of(DESCRIBE_PRODUCERS, 0, body, services=services_of(named=m.named))
        answer = await PRODUCERS.answered(call)
    # As Kafka 4.3.1 has it, with texts.
    assert [
        (topic["name"], row["partition_index"], row["error_code"], (row["error_message"] or "")[:24])
        for topic in answer["topics"]
        for row in topic["partitions"]
    ] == [
        ("a", 0, 0, ""),
        ("a", 7, 3, ""),
        ("nope", 0, 3, "This server does not hos"),
        ("a b", 0, 17, "Topic name is invalid: '"),
        ("x", 0, 29, "Topic authorization fail"),
    ]
