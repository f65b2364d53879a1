from __future__ import annotations

from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.servers.kafka.apis import describe_configs
from broker_core.wire.kafka import DESCRIBE_CONFIGS, Fields
from tests.support.kafka_acls import acl, put_acls
from tests.support.kafka_serving import ask_once, kafka_broker, raw_client
from tests.support.kafka_topics import create


async def _ask(
    catalog: SqliteCatalog, *resources: tuple[int, str, list[str] | None], version: int = 4, **fields: Any
) -> list[Fields]:
    rows = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        for kind, name, keys in resources
    ]
    async with kafka_broker(catalog.path.parent, configs={"segment.ms": "5"}) as broker:
        answer = await ask_once(broker, DESCRIBE_CONFIGS, version, {"resources": rows, **fields})
    found: list[Fields] = answer["results"]
    return found


@pytest.mark.parametrize("few", [200, 1])
async def test_topics_are_described_by_what_they_and_the_settings_set(
    catalog: SqliteCatalog, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describe_configs, "_FEW", few)
    create(catalog, "a", 1)
    rows = await _ask(
        catalog, (2, "a", ["segment.ms"]), (2, "none", None), (2, "a", []), include_synonyms=True
    )
    first, missing, whole = rows
    (config,) = first["configs"]
    assert (config["value"], config["config_source"]) == ("5", 4)
    assert [(each["name"], each["source"]) for each in config["synonyms"]] == [
        ("log.roll.ms", 4),
        ("log.roll.hours", 5),
    ]
    assert (missing["error_code"], missing["error_message"], missing["configs"]) == (3, "", [])
    assert len(whole["configs"]) == 33


async def test_the_broker_and_its_loggers_are_asked_by_number(catalog: SqliteCatalog) -> None:
    rows = await _ask(
        catalog, (4, "1", ["log.roll.ms"]), (4, "", None), (8, "1", None), (8, "", None), (8, "9", None)
    )
    assert [row["error_code"] for row in rows] == [0, 0, 0, 42, 42]
    (config,) = rows[0]["configs"]
    assert (config["value"], config["config_source"], config["synonyms"], config["documentation"]) == (
        "5",
        4,
        [],
        None,
    )
    assert [each["name"] for each in rows[1]["configs"]] == ["min.insync.replicas"]


async def test_nothing_is_kept_of_other_resources(catalog: SqliteCatalog) -> None:
    rows = await _ask(catalog, (16, "m", None), (32, "g", None), (16, "", None), (32, "", None))
    assert [(row["error_code"], row["configs"]) for row in rows] == [(0, []), (0, []), (42, []), (42, [])]


async def test_an_unknown_type_fails_all(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 1)
    rows = await _ask(catalog, (2, "a", None), (77, "x", None))
    assert [row["error_code"] for row in rows] == [42, 42]


async def test_what_acls_hide_comes_last_whether_it_is_there_or_not(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 1)
    create(catalog, "b", 1)
    put_acls(catalog, acl("b", "DESCRIBE_CONFIGS", "User:*"))
    rows = await _ask(catalog, (2, "a", None), (2, "none", None), (4, "1", None), (2, "b", None))
    assert [(row["resource_name"], row["error_code"]) for row in rows] == [
        ("b", 0),
        ("a", 29),
        ("none", 29),
        ("1", 31),
    ]


async def test_an_answer_that_no_memory_is_for_closes_the_connection(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, "a", 1)
    monkeypatch.setattr(describe_configs, "_LARGEST", 5000)
    rows = [{"resource_type": 2, "resource_name": "a", "configuration_keys": None}]
    async with kafka_broker(catalog.path.parent) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            assert (await client.ask(DESCRIBE_CONFIGS, 4, {"resources": rows}))["results"]
            client.send(DESCRIBE_CONFIGS, 4, {"resources": rows * 9})
            assert await client.message() == b""
