from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.kafka.configs import ConfigOperation
from broker_core.names import TopicName
from broker_core.servers.kafka.apis.alter_configs import ALTER_CONFIGS_ROW, INCREMENTAL_ALTER_CONFIGS_ROW
from broker_core.wire.kafka import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS, Fields
from tests.support.kafka_calls import call_of
from tests.support.kafka_serving import ask_once, kafka_broker
from tests.support.kafka_topics import NAMESPACE, changing, create

_SET, _DELETE, _APPEND = ConfigOperation.SET, ConfigOperation.DELETE, ConfigOperation.APPEND
Change = tuple[str, int, str | None]


def _incremental(*resources: tuple[int, str, list[Change]], **fields: Any) -> Fields:
    rows = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {"name": key, "config_operation": number, "value": value} for key, number, value in changes
            ],
        }
        for kind, name, changes in resources
    ]
    return {"resources": rows, **fields}


async def _change(
    catalog: SqliteCatalog,
    *changes: Change,
    topic: str = "a",
    tables: Mapping[str, Any] | None = None,
    **fields: Any,
) -> tuple[int, Any]:
    async with kafka_broker(catalog.path.parent, tables=tables) as broker:
        request = _incremental((2, topic, list(changes)), **fields)
        (row,) = (await ask_once(broker, INCREMENTAL_ALTER_CONFIGS, 1, request))["responses"]
    return row["error_code"], row["error_message"]


def _configs(catalog: SqliteCatalog, name: str = "a") -> dict[str, str]:
    record = catalog.topic(TopicName("persistent", NAMESPACE, name))
    assert record is not None
    return dict(record.configs)


async def test_changes_of_a_topic_are_made_all_or_none(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 1)
    changes = ("retention.ms", _SET, "5"), ("cleanup.policy", _APPEND, "compact")
    assert await _change(catalog, *changes) == (0, None)
    assert _configs(catalog) == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    code, message = await _change(catalog, ("retention.ms", _DELETE, None), ("segment.ms", _SET, "x"))
    assert (code, message) == (40, "Invalid value x for configuration segment.ms: Not a number of type LONG")
    assert await _change(catalog, ("retention.ms", _DELETE, None), validate_only=True) == (0, None)
    assert _configs(catalog) == {"retention.ms": "5", "cleanup.policy": "delete,compact"}


async def test_what_a_topic_has_already_counts_for_a_conflict(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 1)
    assert await _change(catalog, ("min.compaction.lag.ms", _SET, "5")) == (0, None)
    code, message = await _change(catalog, ("max.compaction.lag.ms", _SET, "4"))
    assert (code, message) == (
        40,
        "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)",
    )


async def test_what_a_topic_has_is_for_clients_that_may_list_it(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 1)
    assert (await _change(catalog, ("min.compaction.lag.ms", _SET, "5")))[0] == 0
    for changes, said in (
        ([("max.compaction.lag.ms", _SET, "4")], "The configs that the topic has do not allow the change"),
        (
            [("retention.ms", _SET, "x")],
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
    ):
        assert await _change(catalog, *changes, tables=changing()) == (40, said)


# Recorded from a broker of 4.3.1: whether there is such a topic comes last.
@pytest.mark.parametrize(
    ("topic", "changes", "code"),
    [
        ("none", [("retention.ms", _SET, None), ("retention.ms", _SET, "1")], 42),
        ("none", [("retention.ms", _SET, None)], 42),
        ("a b", [("retention.ms", _APPEND, "1")], 40),
        ("a b", [("no.such", _SET, "1")], 17),
        ("", [("no.such", _SET, "1")], 42),
        ("none", [("no.such", _SET, "1")], 40),
        ("none", [("no.such", _DELETE, None)], 3),
        ("none", [], 3),
        ("none", [("retention.ms", 4, "1")], -1),
    ],
)
async def test_the_checks_have_kafkas_order(
    catalog: SqliteCatalog, topic: str, changes: list[Change], code: int
) -> None:
    assert (await _change(catalog, *changes, topic=topic))[0] == code


async def test_a_replacement_takes_away_what_it_does_not_name(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 1)
    create(catalog, "b", 1)
    async with kafka_broker(catalog.path.parent) as broker:
        for configs in ({"retention.ms": "5", "segment.ms": "6"}, {"segment.ms": "7"}, {}):
            rows = [{"name": name, "value": value} for name, value in configs.items()]
            request = {"resources": [{"resource_type": 2, "resource_name": "a", "configs": rows}]}
            (row,) = (await ask_once(broker, ALTER_CONFIGS, 2, request))["responses"]
            assert row["error_code"] == 0
            assert _configs(catalog) == configs


async def test_each_resource_is_named_once_and_only_topics_change(catalog: SqliteCatalog) -> None:
    for name in ("a", "b"):
        create(catalog, name, 1)
    change: list[Change] = [("retention.ms", _SET, "5")]
    asked = [(2, "a"), (2, "a"), (2, "b"), (4, "1"), (4, "9"), (16, "m"), (77, "x")]
    async with kafka_broker(catalog.path.parent) as broker:
        request = _incremental(*((kind, name, change) for kind, name in asked))
        rows = (await ask_once(broker, INCREMENTAL_ALTER_CONFIGS, 1, request))["responses"]
    assert [(row["resource_type"], row["resource_name"]) for row in rows] == asked
    assert [row["error_code"] for row in rows] == [42, 42, 0, 44, 42, 44, 42]
    assert (_configs(catalog, "a"), _configs(catalog, "b")) == ({}, {"retention.ms": "5"})


async def test_a_wrong_number_of_an_operation_fails_all_that_kafkas_controller_would_get(
    catalog: SqliteCatalog,
) -> None:
    for name in ("a", "b"):
        create(catalog, name, 1)
    request = _incremental(
        (2, "a", [("retention.ms", 9, "5")]),
        (2, "b", [("retention.ms", _SET, "5")]),
        (2, "c", [("retention.ms", _SET, None)]),
    )
    async with kafka_broker(catalog.path.parent) as broker:
        rows = (await ask_once(broker, INCREMENTAL_ALTER_CONFIGS, 0, request))["responses"]
    assert [row["error_code"] for row in rows] == [-1, -1, 42]
    assert _configs(catalog, "b") == {}


async def test_a_request_of_more_resources_than_the_most_changes_none(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.servers.kafka.apis.alter_configs.MOST_CHANGES", 2)
    names = ("a", "b", "c")
    change: list[Change] = [("retention.ms", _SET, "5")]
    for name in names:
        create(catalog, name, 1)
    async with kafka_broker(catalog.path.parent) as broker:
        for most, code in ((3, 44), (2, 0)):
            request = _incremental(*((2, name, change) for name in names[:most]))
            rows = (await ask_once(broker, INCREMENTAL_ALTER_CONFIGS, 1, request))["responses"]
            assert [row["error_code"] for row in rows] == [code] * most
            assert _configs(catalog) == ({} if code else {"retention.ms": "5"})


async def test_nothing_changes_before_a_cluster() -> None:
    for row in (ALTER_CONFIGS_ROW, INCREMENTAL_ALTER_CONFIGS_ROW):
        body = {"resources": [{"resource_type": 2, "resource_name": "a", "configs": []}]}
        (answer,) = (await row.answered(call_of(row.api, 1, body)))["responses"]
        assert (answer["resource_name"], answer["error_code"]) == ("a", 44)


async def test_a_message_about_very_much_is_cut(catalog: SqliteCatalog) -> None:
    create(catalog, "a")
    nulls = [{"name": f"n{number:09d}", "value": None} for number in range(5000)]
    resources = [{"resource_type": 2, "resource_name": "a", "configs": nulls}]
    async with kafka_broker(catalog.path.parent) as broker:
        (row,) = (await ask_once(broker, ALTER_CONFIGS, 1, {"resources": resources}))["responses"]
    assert row["error_code"] == 42
    assert row["error_message"].endswith("...")
